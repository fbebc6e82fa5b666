#include "errors.h"

#include <nanobind/stl/string.h>

#include <new>

#include "base/file/file_error.h"
#include "base/thread/cancel.h"
#include "text.h"

namespace nb = nanobind;

namespace heddle::python {

namespace {

void set(const Error& error) {
  const auto* const of_file = dynamic_cast<const FileError*>(&error);
  const nb::object made =
      nb::module_::import_("heddle._errors")
          .attr("make")(static_cast<int>(error.code()), text_object(error.where()), text_object(error.why()),
                        text_object(error.remedy()), text_object(error.what()),
                        of_file == nullptr ? nb::object(nb::none()) : nb::cast(of_file->number()));
  PyErr_SetObject(made.type().ptr(), made.ptr());
}

}  // namespace

void register_errors() {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      set(error);
    } catch (const Cancelled&) {
      PyErr_SetNone(PyExc_KeyboardInterrupt);
    }
  });
}

void set_python_error() noexcept {
  try {
    try {
      throw;
    } catch (const Error& error) {
      set(error);
    } catch (const Cancelled&) {
      PyErr_SetNone(PyExc_KeyboardInterrupt);
    }
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
}

void refuse_argument(const std::string& where, const std::string& why, const std::string& remedy) {
  throw Error(ErrorCode::kInvalidArgument, where, why, remedy);
}

void refuse_input(const std::string& where, const std::string& why, const std::string& remedy) {
  throw Error(ErrorCode::kInvalidInput, where, why, remedy);
}

std::string class_name(nb::handle object) {
  const nb::handle type = object.type();
  const std::string module = nb::cast<std::string>(nb::str(type.attr("__module__")));
  const std::string name = nb::cast<std::string>(nb::str(type.attr("__qualname__")));
  return module == "builtins" ? name : module + "." + name;
}

}  // namespace heddle::python
