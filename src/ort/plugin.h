#pragma once

#include <cstddef>

#include "heddle/export.h"
#include "ort/abi.h"

// What libheddle_ort.so exports. ONNX Runtime finds both functions by their names.
extern "C" {

// Called when a program registers the library. Stores at most `most` providers in `factories`, and their number.
HEDDLE_API heddle::ort::OrtStatus* CreateEpFactories(const char* registered_name, const heddle::ort::OrtApiBase* base,
                                                     const heddle::ort::OrtLogger* logger,
                                                     heddle::ort::OrtEpFactory** factories, size_t most, size_t* count);

HEDDLE_API heddle::ort::OrtStatus* ReleaseEpFactory(heddle::ort::OrtEpFactory* factory);
}
