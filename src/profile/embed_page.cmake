# Writes OUTPUT, a C++ source with the parts of the HTML page below ROOT: the template, the style sheet, and the scripts as one module.
# Run as: cmake -DROOT=... -DOUTPUT=... -P embed_page.cmake
# Each script stands behind those that it imports, so that the imports can be left out; names at the top of a script are unique.
set(SCRIPTS
    core/decode core/tree core/rows core/search core/format core/flame core/difference core/timeline core/roofline core/source core/advice
    view/dom view/help view/flame view/flames view/table view/tables view/timeline view/roofline view/details view/overview
    view/app view/main)
set(SCRIPT "")
foreach(NAME ${SCRIPTS})
  file(READ ${ROOT}/${NAME}.js BODY)
  string(REGEX REPLACE "\nimport [^\n]*" "" BODY "\n${BODY}")
  string(REGEX REPLACE "\nexport " "\n" BODY "${BODY}")
  string(APPEND SCRIPT "${BODY}")
endforeach()
file(READ ${ROOT}/page.html HTML)
file(READ ${ROOT}/style.css STYLE)
set(TEXT "#include \"profile/page_parts.h\"\n\nnamespace heddle::profile {\n\nPageParts page_parts() {\n  return {\n")
foreach(PART HTML STYLE SCRIPT)
  string(APPEND TEXT "R\"heddle_raw(${${PART}})heddle_raw\",\n")
endforeach()
string(APPEND TEXT "};\n}\n\n}  // namespace heddle::profile\n")
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "${TEXT}" @ONLY)
