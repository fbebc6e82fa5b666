#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <thread>

#include "base/file/file.h"
#include "base/log.h"
#include "heddle/error.h"
#include "jit/cache.h"
#include "jit/compiler.h"
#include "jit/headers.h"
#include "jit/library.h"
#include "jit_fixture.h"
#include "tests/error_of.h"

namespace heddle::jit {
namespace {

using test::error_of;

namespace fs = std::filesystem;

std::vector<std::string> files_below(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(folder, error)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  return paths;
}

TEST_F(Jit, CompilesSeveralUnitsAndTakesThemFromTheCache) {
  const std::vector<std::string> units = {unit("a", 2), unit("b", 3)};
  const CompiledLibrary first = compile(units, target_, 2, true);
  EXPECT_FALSE(first.from_cache);
  EXPECT_EQ(call(first, "a"), 2);
  EXPECT_EQ(call(first, "b"), 3);
  const CompiledLibrary second = compile(units, target_, 2, true);
  EXPECT_TRUE(second.from_cache);
  EXPECT_EQ(first.bytes, second.bytes);
  EXPECT_FALSE(compile({unit("a", 5)}, target_, 1, true).from_cache);
}

TEST_F(Jit, UnitsThatLibrariesShareAreCompiledOnce) {
  const std::string object = "/cache/object";
  Recipe recipe{compile_flags(target_)};
  recipe.shared = 1;
  const CompiledLibrary one = compile({unit("both", 4), unit("a", 2)}, recipe, 1, true);
  ASSERT_EQ(files_below(dir_.path() + object).size(), 1u);
  std::vector<size_t> compiled;
  recipe.compiled = [&](size_t unit) { compiled.push_back(unit); };
  const CompiledLibrary other = compile({unit("both", 4), unit("b", 3)}, recipe, 1, true);
  EXPECT_FALSE(other.from_cache);
  EXPECT_EQ(call(other, "both"), 4);
  EXPECT_EQ(call(other, "b"), 3);
  EXPECT_EQ(compiled.size(), 2u);  // progress counts what is there, too
  EXPECT_EQ(files_below(dir_.path() + object).size(), 1u);
  // A damaged one is made again.
  const std::string path = files_below(dir_.path() + object)[0];
  write_file(path, "damaged");
  EXPECT_EQ(call(compile({unit("both", 4), unit("c", 5)}, recipe, 1, true), "both"), 4);
  EXPECT_NE(MappedFile::open(path)->text(), "damaged");
}

TEST_F(Jit, LibrariesAreIndependentAndMissingKernelsAreNamed) {
  const CompiledLibrary two = compile({unit("k", 2)}, target_, 1, true);
  const CompiledLibrary three = compile({unit("k", 3)}, target_, 1, true);
  const auto keep = Library::load(two.bytes);
  EXPECT_EQ(call(three, "k"), 3);
  EXPECT_EQ(call(two, "k"), 2);
  EXPECT_EQ(call(three, "k"), 3);
  const Error error = error_of([&] { keep->find("absent"); });
  EXPECT_EQ(error.code(), ErrorCode::kDamagedArtefact);
  EXPECT_NE(error.why().find("absent"), std::string::npos);
}

TEST_F(Jit, BytesThatAreNoLibraryAreRefused) {
  EXPECT_EQ(error_of([] { Library::load("not a library"); }).code(), ErrorCode::kDamagedArtefact);
  EXPECT_EQ(error_of([] { Library::load(""); }).code(), ErrorCode::kDamagedArtefact);
}

TEST_F(Jit, KernelsSeeTheTileHeadersWithoutTheSourceTree) {
  ASSERT_FALSE(embedded_headers().empty());
  for (const EmbeddedHeader& header : embedded_headers()) {
    EXPECT_EQ(header.text, MappedFile::open(std::string(HEDDLE_SOURCE_DIR "/") + std::string(header.path))->text());
  }
  const std::string text = "#include \"tile/core/types.h\"\n" + unit("k", 2);
  EXPECT_EQ(call(compile({text}, target_, 1, true), "k"), 2);
}

TEST_F(Jit, ADamagedHeaderIsWrittenAgain) {
  const std::string root = dir_.path() + "/h";
  materialise_headers(root);
  const std::string path = root + "/" + std::string(embedded_headers()[0].path);
  write_file(path, "#error damaged");
  materialise_headers(root);
  EXPECT_EQ(MappedFile::open(path)->text(), embedded_headers()[0].text);
}

TEST_F(Jit, WhatTheCompilerSaysIsInTheError) {
  const Error error = error_of([&] { compile({"int x = no_such_name;\n"}, target_, 1, true); });
  EXPECT_EQ(error.code(), ErrorCode::kCompilerFailed);
  EXPECT_NE(error.why().find("no_such_name"), std::string::npos);
}

TEST_F(Jit, NoCompilerIsSaidWithWhatWasSearched) {
  {
    const Variable path("PATH", dir_.path());
    const Variable chosen("HEDDLE_CXX", "");
    const Error error = error_of([&] { compile({unit("a", 2)}, target_, 1, true); });
    EXPECT_EQ(error.code(), ErrorCode::kNoCompiler);
    EXPECT_NE(error.why().find("g++"), std::string::npos);
    EXPECT_NE(error.why().find(dir_.path()), std::string::npos);
  }
  const Variable chosen("HEDDLE_CXX", "/nowhere/cxx");
  const Error error = error_of([] { find_compiler(); });
  EXPECT_EQ(error.code(), ErrorCode::kNoCompiler);
  EXPECT_NE(error.why().find("/nowhere/cxx"), std::string::npos);
}

TEST_F(Jit, AnOldCompilerIsPassedOverOrRefused) {
  const auto write = [&](const std::string& name, const std::string& says) {
    const std::string path = dir_.path() + "/" + name;
    write_file(path, "#!/bin/sh\necho '" + says + "'\n");
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  };
  const Variable path("PATH", dir_.path() + ":/usr/bin:/bin");
  const std::string licence =
      "Copyright (C) 2019 Free Software Foundation, Inc.\n"
      "This is free software; see the source for copying conditions.  There is NO";
  const std::string old = write("c++", "c++ (Ubuntu 9.4.0-1ubuntu1~20.04.2) 9.4.0\n" + licence);
  const std::string later = write("g++", "g++ (Debian 12.2.0-14) 12.2.0\n" + licence);
  {
    const Variable chosen("HEDDLE_CXX", "");
    EXPECT_EQ(find_compiler().path, later);
  }
  const Variable chosen("HEDDLE_CXX", old);
  const Error error = error_of([] { find_compiler(); });
  EXPECT_EQ(error.code(), ErrorCode::kNoCompiler);
  EXPECT_EQ(error.where(), old);
  EXPECT_NE(error.remedy().find("HEDDLE_CXX=clang++"), std::string::npos);
}

TEST_F(Jit, AFolderThatCannotBeUsedCostsOneWarning) {
  write_file(dir_.path() + "/file", "x");
  const Variable folder("HEDDLE_CACHE_DIR", dir_.path() + "/file/cache");  // below a file: not even root can make it
  std::vector<std::string> warnings;
  set_log_sink([&](LogLevel level, std::string_view text) {
    if (level == LogLevel::kWarning) warnings.emplace_back(text);
  });
  for (int i = 0; i < 2; ++i) EXPECT_EQ(call(compile({unit("a", 7)}, target_, 1, true), "a"), 7);
  set_log_sink({});
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("/file/cache"), std::string::npos);
}

TEST_F(Jit, DamagedEntriesAreFoundAndMadeAgain) {
  const std::vector<std::string> units = {unit("a", 2)};
  const CompiledLibrary good = compile(units, target_, 1, true);
  const std::string folder = dir_.path() + "/cache/library";
  ASSERT_EQ(files_below(folder).size(), 1u);
  const std::string path = files_below(folder)[0];
  const std::string whole(MappedFile::open(path)->text());
  std::mt19937 random(7);
  std::vector<std::string> damaged = {"", whole.substr(0, 10), whole.substr(0, whole.size() - 1), whole + "x"};
  for (int i = 0; i < 40; ++i) {
    damaged.push_back(whole);
    const size_t at = i < 20 ? random() % 64 : random() % whole.size();
    damaged.back()[at] = static_cast<char>(damaged.back()[at] ^ (1 << (random() % 8)));
  }
  const Cache cache = Cache::of_user();
  const std::string name = path.substr(path.rfind('/') + 1);
  const Hash128 key = {std::stoull(name.substr(0, 16), nullptr, 16), std::stoull(name.substr(16), nullptr, 16)};
  for (const std::string& text : damaged) {
    write_file(path, text, Sync::kNo);
    EXPECT_FALSE(cache.find(EntryKind::kLibrary, key));
    EXPECT_FALSE(file_exists(path));
  }
  write_file(path, damaged[2]);
  const CompiledLibrary again = compile(units, target_, 1, true);
  EXPECT_FALSE(again.from_cache);
  EXPECT_EQ(call(again, "a"), 2);
  EXPECT_TRUE(compile(units, target_, 1, true).from_cache);
  EXPECT_EQ(call(good, "a"), 2);
}

TEST_F(Jit, EntriesUnderAnotherKeyAreRefused) {
  const Cache cache(dir_.path() + "/c");
  const Hash128 one = hash_text("1"), two = hash_text("2");
  ASSERT_TRUE(cache.store(EntryKind::kLibrary, one, "payload"));
  EXPECT_EQ(cache.find(EntryKind::kLibrary, one)->payload, "payload");
  fs::rename(cache.path_of(EntryKind::kLibrary, one), cache.path_of(EntryKind::kLibrary, two));
  EXPECT_FALSE(cache.find(EntryKind::kLibrary, two));
}

TEST_F(Jit, ClearingTheCacheLeavesTheScratchOfThoseThatCompile) {
  const Cache cache(dir_.path() + "/c");
  const TempDir compiling("heddle-jit", cache.scratch_folder());
  write_file(compiling.path() + "/k0.cc", "");
  cache.clear();
  EXPECT_TRUE(file_exists(compiling.path() + "/k0.cc"));
}

TEST_F(Jit, InfoAndClearTouchOnlyOurFiles) {
  const Cache cache(dir_.path() + "/c");
  ASSERT_TRUE(cache.store(EntryKind::kLibrary, hash_text("1"), "payload"));
  write_file(dir_.path() + "/c/precious", "mine");
  EXPECT_EQ(cache.info().entries, 1u);
  EXPECT_GT(cache.info().bytes, 7u);
  EXPECT_EQ(cache.clear().entries, 1u);
  EXPECT_EQ(cache.info().entries, 0u);
  EXPECT_TRUE(file_exists(dir_.path() + "/c/precious"));
}

TEST_F(Jit, TrimmingRemovesWhatWasNotUsedForLongest) {
  const Cache cache(dir_.path() + "/c");
  const std::string payload(1000, 'x');
  for (const char* key : {"1", "2", "3"}) {
    ASSERT_TRUE(cache.store(EntryKind::kLibrary, hash_text(key), payload));
    ::usleep(20000);
  }
  EXPECT_TRUE(cache.find(EntryKind::kLibrary, hash_text("1")));
  cache.trim(2500);
  EXPECT_TRUE(cache.find(EntryKind::kLibrary, hash_text("1")));
  EXPECT_FALSE(cache.find(EntryKind::kLibrary, hash_text("2")));
  EXPECT_TRUE(cache.find(EntryKind::kLibrary, hash_text("3")));
  const Variable limit("HEDDLE_CACHE_GB", "0");
  cache.trim();
  EXPECT_EQ(cache.info().entries, 0u);
}

TEST_F(Jit, CompilingLeavesNoTemporaryFiles) {
  compile({unit("a", 2)}, target_, 1, true);
  EXPECT_TRUE(files_below(dir_.path() + "/cache/scratch").empty());
}

TEST_F(Jit, ThreadsMayCompileTheSameAtOnce) {
  std::vector<std::thread> threads;
  std::array<float, 3> results{};
  for (float& result : results) {
    threads.emplace_back([&] { result = call(compile({unit("a", 4)}, target_, 1, true), "a"); });
  }
  for (auto& thread : threads) thread.join();
  for (float result : results) EXPECT_EQ(result, 4);
  EXPECT_EQ(Cache::of_user().info().entries, 1u);
}

// Kills compiling processes at random moments: whatever they leave, the next compile gets a good library.
TEST_F(Jit, AKilledProcessLeavesAUsableCache) {
  std::mt19937 random(11);
  for (int round = 0; round < 6; ++round) {
    const std::vector<std::string> units = {unit("a", round + 2)};
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      try {
        compile(units, target_, 1, true);
      } catch (...) {
      }
      ::_exit(0);
    }
    ::usleep(random() % 120000);
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(call(compile(units, target_, 1, true), "a"), static_cast<float>(round + 2));
    EXPECT_TRUE(compile(units, target_, 1, true).from_cache);
  }
}

}  // namespace
}  // namespace heddle::jit
