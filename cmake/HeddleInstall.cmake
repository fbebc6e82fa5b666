# What `cmake --install` puts where: the command, libheddle.so with its headers, and what CMake and pkg-config need to
# find them. The folders are those of GNUInstallDirs.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS heddle RUNTIME)
install(TARGETS heddle_profile_shared LIBRARY)  # `heddle profile` puts it into programs
# The plug-in of ONNX Runtime, and the header for programs that register it.
install(TARGETS heddle_ort_shared LIBRARY)
install(FILES ${PROJECT_SOURCE_DIR}/include/heddle_ort.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS heddle_shared EXPORT heddle_targets LIBRARY FILE_SET HEADERS)
# Headers of kernels are included as "tile/...": they have a folder of their own.
set_target_properties(heddle_tile PROPERTIES EXPORT_NAME tile)
target_include_directories(heddle_tile SYSTEM INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/heddle-tile>)
install(TARGETS heddle_tile EXPORT heddle_targets)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/tile DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/heddle-tile FILES_MATCHING PATTERN "*.h")

# Where the loader searches, it finds what its cache knows.
install(CODE [[
  if("$ENV{DESTDIR}" STREQUAL "" AND CMAKE_INSTALL_PREFIX MATCHES "^/usr(/local)?/?$")
    execute_process(COMMAND /sbin/ldconfig RESULT_VARIABLE STATUS ERROR_VARIABLE REASON)
    if(NOT STATUS EQUAL 0)
      message(WARNING "ldconfig failed, so programs may not find libheddle.so yet: ${REASON}")
    endif()
  endif()
]])

# find_package(Heddle 0.1) -> Heddle::heddle, Heddle::tile
set(PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/Heddle)
install(EXPORT heddle_targets FILE HeddleTargets.cmake NAMESPACE Heddle:: DESTINATION ${PACKAGE_DIR})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/package/HeddleConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/package/HeddleConfig.cmake INSTALL_DESTINATION ${PACKAGE_DIR})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/HeddleConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/HeddleConfig.cmake ${PROJECT_BINARY_DIR}/package/HeddleConfigVersion.cmake
        DESTINATION ${PACKAGE_DIR})

# pkg-config heddle: paths are relative to the file, so that an installed tree can be moved.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig
           OUTPUT_VARIABLE PREFIX_FROM_PKGCONFIG)
configure_file(${PROJECT_SOURCE_DIR}/cmake/package/heddle.pc.in ${PROJECT_BINARY_DIR}/package/heddle.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/package/heddle.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/NOTICE ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

# The manual page and the completions are printed by the command, from the tables that it parses its arguments with.
# heddle_printed(FILE FOLDER ARGUMENT...): installs FILE, what `heddle ARGUMENT...` prints, into FOLDER.
function(heddle_printed FILE FOLDER)
  set(OUTPUT ${PROJECT_BINARY_DIR}/share/${FILE})
  get_filename_component(OUTPUT_DIR ${OUTPUT} DIRECTORY)
  file(MAKE_DIRECTORY ${OUTPUT_DIR})
  add_custom_command(OUTPUT ${OUTPUT} COMMAND heddle ${ARGN} > ${OUTPUT} DEPENDS heddle
                     COMMENT "Printing ${FILE}" VERBATIM)
  set_property(GLOBAL APPEND PROPERTY HEDDLE_PRINTED ${OUTPUT})
  install(FILES ${OUTPUT} DESTINATION ${FOLDER})
endfunction()
heddle_printed(heddle.1 ${CMAKE_INSTALL_MANDIR}/man1 manual)
heddle_printed(bash/heddle ${CMAKE_INSTALL_DATADIR}/bash-completion/completions completion bash)
heddle_printed(zsh/_heddle ${CMAKE_INSTALL_DATADIR}/zsh/site-functions completion zsh)
heddle_printed(fish/heddle.fish ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d completion fish)
get_property(PRINTED GLOBAL PROPERTY HEDDLE_PRINTED)
add_custom_target(heddle_printed ALL DEPENDS ${PRINTED})
