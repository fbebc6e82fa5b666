# Targets of this project. One static library per folder of src/, so that the link graph repeats the
# allowed direction of dependence (docs/design/overview.md).

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# libheddle.so exports what include/heddle marks with HEDDLE_API.
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
# The compiler itself walks over small graphs: -O3 doubles the time of a build and shows in no model. What computes over the
# elements of tensors is for heddle_optimise(). GCC's -Og leaves out the passes that take it longest.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  string(REPLACE "-O3" "-Og" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
else()
  string(REPLACE "-O3" "-O1" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
endif()
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

# Headers that most units share are read once for each of three kinds of target, so that a cold build takes less time. ccache
# keeps units, and does so better without.
if(CCACHE_PROGRAM OR CMAKE_CXX_COMPILER_LAUNCHER)
  set(HEDDLE_PRECOMPILE_DEFAULT OFF)
else()
  set(HEDDLE_PRECOMPILE_DEFAULT ON)
endif()
option(HEDDLE_PRECOMPILE_HEADERS "Read shared headers once for many units" ${HEDDLE_PRECOMPILE_DEFAULT})
# Warnings are errors with GCC 12. Later ones find more to warn of, in system headers too, and so does GCC 12 in those of a
# precompiled header.
if(NOT DEFINED CMAKE_COMPILE_WARNING_AS_ERROR AND PROJECT_IS_TOP_LEVEL AND NOT HEDDLE_PRECOMPILE_HEADERS
   AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  set(CMAKE_COMPILE_WARNING_AS_ERROR ON)
endif()
option(HEDDLE_UNITY "Compile the units of a folder together" ${HEDDLE_PRECOMPILE_DEFAULT})
set(HEDDLE_STANDARD_HEADERS
    <algorithm> <array> <cmath> <cstdint> <functional> <map> <memory> <optional> <set> <span> <string> <string_view> <utility>
    <vector> <fmt/format.h>)

# heddle_precompile(TARGET OWNER [HEADER...]): TARGET reads the standard headers and HEADER... precompiled by OWNER, which has
# the same flags and is TARGET itself where nothing was precompiled for its kind yet.
function(heddle_precompile TARGET OWNER)
  if(NOT HEDDLE_PRECOMPILE_HEADERS)
    return()
  endif()
  if("${TARGET}" STREQUAL "${OWNER}")
    target_precompile_headers(${TARGET} PRIVATE ${HEDDLE_STANDARD_HEADERS} ${ARGN})
  else()
    target_precompile_headers(${TARGET} REUSE_FROM ${OWNER})
  endif()
endfunction()

add_library(heddle_options INTERFACE)
target_compile_options(heddle_options INTERFACE -Wall -Wextra -Wpedantic)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Collecting its garbage takes GCC a tenth of its time before it holds as much as this (in KiB).
  target_compile_options(heddle_options INTERFACE --param=ggc-min-heapsize=524288)
endif()
if(HEDDLE_UNITY AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
  # fmt's checks of format strings while compiling take a while: builds with ccache and the preset debug have them.
  target_compile_definitions(heddle_options INTERFACE FMT_CONSTEVAL=)
endif()
target_include_directories(heddle_options INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src
                                                    ${PROJECT_SOURCE_DIR})
# Tells builds of one version apart, wherever they are copied to (base/build_id.h).
target_link_options(heddle_options INTERFACE -Wl,--build-id=sha1)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 reports inlined std::string and std::vector code that never runs (GCC bugs 105651, 108822).
  target_compile_options(heddle_options INTERFACE -Wno-restrict -Wno-free-nonheap-object)
endif()
if(HEDDLE_SANITIZE)
  # Instrumented, std::regex looks uninitialised to GCC 12 (GCC bug 105562).
  target_compile_options(heddle_options INTERFACE -Wno-maybe-uninitialized)
  target_compile_options(heddle_options INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=undefined
                                                  -fno-omit-frame-pointer)
  target_link_options(heddle_options INTERFACE -fsanitize=address,undefined)
  target_compile_definitions(heddle_options INTERFACE _GLIBCXX_ASSERTIONS)
endif()

# heddle_unite(TARGET SOURCE...): units of TARGET are compiled together, those of src/X apart from those of src/Y. Half of the
# time of a small unit goes into what it shares with the others: headers, and instances of the standard library.
function(heddle_unite TARGET)
  if(NOT HEDDLE_UNITY)
    return()
  endif()
  set_target_properties(${TARGET} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  set(LARGEST 240000)  # bytes of text: some 6,000 lines
  foreach(SOURCE ${ARGN})
    cmake_path(ABSOLUTE_PATH SOURCE NORMALIZE)
    set(KEY united)
    cmake_path(RELATIVE_PATH SOURCE BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/src OUTPUT_VARIABLE PATH)
    if(PATH MATCHES "^([a-z]+)/")
      set(KEY ${CMAKE_MATCH_1})
    endif()
    file(SIZE ${SOURCE} BYTES)
    if(NOT DEFINED BATCH_${KEY})
      set(BATCH_${KEY} 0)
      set(BYTES_${KEY} 0)
    endif()
    math(EXPR BYTES_${KEY} "${BYTES_${KEY}} + ${BYTES}")
    if(BYTES_${KEY} GREATER LARGEST)
      math(EXPR BATCH_${KEY} "${BATCH_${KEY}} + 1")
      set(BYTES_${KEY} ${BYTES})
    endif()
    set_source_files_properties(${SOURCE} PROPERTIES UNITY_GROUP ${KEY}_${BATCH_${KEY}})
  endforeach()
endfunction()

# heddle_optimise(TARGET [SOURCE...]): TARGET, or those units of it, computes over the elements of tensors. They read no precompiled
# headers: GCC 12 crashes on those that were made with another level of optimisation.
function(heddle_optimise TARGET)
  if(ARGN)
    set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-O3> UNITY_GROUP "" SKIP_PRECOMPILE_HEADERS ON)
  else()
    target_compile_options(${TARGET} PRIVATE $<$<CONFIG:Release>:-O3>)
    set_target_properties(${TARGET} PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
  endif()
endfunction()

# heddle_library(NAME [DEPS lib...] [EXTERNAL lib...]): all .cc files below the calling folder become heddle_NAME.
function(heddle_library NAME)
  cmake_parse_arguments(ARG "" "" "DEPS;EXTERNAL" ${ARGN})
  file(GLOB_RECURSE SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  list(FILTER SOURCES EXCLUDE REGEX "/main\\.cc$")
  add_library(heddle_${NAME} STATIC ${SOURCES})
  target_link_libraries(heddle_${NAME} PUBLIC heddle_options)
  foreach(DEP ${ARG_DEPS})
    target_link_libraries(heddle_${NAME} PUBLIC heddle_${DEP})
  endforeach()
  target_link_libraries(heddle_${NAME} PUBLIC ${ARG_EXTERNAL})
  heddle_unite(heddle_${NAME} ${SOURCES})
  if(NAME MATCHES "^(base|target|jit|runtime|profile|zoo)$")  # know no IR
    heddle_precompile(heddle_${NAME} heddle_base)
  else()
    heddle_precompile(heddle_${NAME} heddle_ir ${PROJECT_SOURCE_DIR}/src/ir/graph.h)
  endif()
endfunction()

# heddle_gpu_test(TARGET): the tests of a binary for the emulator once more with label "gpu", on the GPU of this machine.
if(EXISTS /dev/nvidia0)
  set(HEDDLE_HAS_GPU ON)
endif()
option(HEDDLE_GPU_TESTS "Run the tests of emulated suites on this machine's GPU as well" ${HEDDLE_HAS_GPU})
function(heddle_gpu_test TARGET)
  if(HEDDLE_GPU_TESTS)
    gtest_discover_tests(${TARGET} TEST_PREFIX "gpu/" TEST_LIST ${TARGET}_gpu DISCOVERY_TIMEOUT 60
                         PROPERTIES LABELS gpu TIMEOUT 600 ENVIRONMENT "HEDDLE_CUDA_DRIVER=libcuda.so.1")
  endif()
endfunction()

# heddle_test_options(TARGET): how a binary of tests is compiled.
function(heddle_test_options TARGET)
  target_link_libraries(${TARGET} PRIVATE heddle_options GTest::gtest_main GTest::gmock)
  heddle_precompile(${TARGET} base_tests <gmock/gmock.h> <gtest/gtest.h>)
endfunction()

# heddle_test(NAME [SOURCES file...] [DEPS lib...] [LABELS label...]): one GoogleTest binary from every *_test.cc in the calling
# folder and the files that are named.
function(heddle_test NAME)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LABELS" ${ARGN})
  file(GLOB SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*_test.cc)
  list(APPEND SOURCES ${ARG_SOURCES})
  add_executable(${NAME}_tests ${SOURCES})
  heddle_unite(${NAME}_tests ${SOURCES})
  heddle_test_options(${NAME}_tests)
  foreach(DEP ${ARG_DEPS})
    target_link_libraries(${NAME}_tests PRIVATE heddle_${DEP})
  endforeach()
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)  # an empty list would vanish below and take the timeout as its value
  endif()
  gtest_discover_tests(${NAME}_tests TEST_PREFIX "${NAME}/" DISCOVERY_TIMEOUT 60
                       PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 600)
endfunction()
