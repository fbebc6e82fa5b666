// make_page PROFILE.json PAGE.html: the page of a profile, for tests in a browser.
#include <cstdio>
#include <exception>
#include <string>

#include "base/file/file.h"
#include "profile/page.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: make_page PROFILE.json PAGE.html\n", stderr);
    return 2;
  }
  try {
    heddle::write_file(argv[2], heddle::profile::page(heddle::MappedFile::read(argv[1])->text(), argv[1]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
