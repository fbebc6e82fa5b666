# Writes OUTPUT, a C++ source with every header below ROOT/tile as text, so that an installed Heddle compiles kernels without its source tree.
# Run as: cmake -DROOT=... -DOUTPUT=... -P embed_headers.cmake
file(GLOB_RECURSE HEADERS RELATIVE ${ROOT} ${ROOT}/tile/*.h)
list(SORT HEADERS)
set(TEXT "#include \"jit/headers.h\"\n\nnamespace heddle::jit {\n\nnamespace {\nconst EmbeddedHeader kHeaders[] = {\n")
foreach(HEADER ${HEADERS})
  file(READ ${ROOT}/${HEADER} BODY)
  string(APPEND TEXT "{\"${HEADER}\", R\"heddle_raw(${BODY})heddle_raw\"},\n")
endforeach()
string(APPEND TEXT "};\n}  // namespace\n\nstd::span<const EmbeddedHeader> embedded_headers() {\n  return kHeaders;\n}\n\n}  // namespace heddle::jit\n")
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "${TEXT}" @ONLY)
