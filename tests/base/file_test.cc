#include "base/file/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "base/file/file_parts.h"
#include "base/hash.h"
#include "heddle/error.h"

namespace heddle {
namespace {

ErrorCode code_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::kInternal;
}

TEST(File, WritesAndMaps) {
  const TempDir dir;
  const std::string path = dir.path() + "/a";
  for (const std::string& text : {std::string("first"), std::string(), std::string(100003, 'x')}) {
    write_file(path, text);
    EXPECT_EQ(MappedFile::open(path)->text(), text);
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path()), {}), 1) << "nothing is left aside";
}

TEST(File, AMappingKeepsTheContentThatItWasOpenedWith) {
  const TempDir dir;
  const std::string path = dir.path() + "/a";
  write_file(path, "old");
  const auto old = MappedFile::open(path);
  write_file(path, "new text");
  release_pages(old->data(), old->size());
  EXPECT_EQ(old->text(), "old");
}

TEST(File, ReleasingPagesNeverChangesContent) {
  const TempDir dir;
  const std::string text(5 * 4096 + 7, 'x');
  write_file(dir.path() + "/a", text);
  const auto file = MappedFile::open(dir.path() + "/a");
  release_pages(file->data(), file->size());
  release_pages(file->data() + 1, file->size() - 1);
  release_pages(file->data() + 100, size_t{1} << 40);
  EXPECT_EQ(file->text(), text);
  const std::vector<char> memory(64 << 10, 'y');
  release_pages(memory.data(), memory.size());
  EXPECT_EQ(memory, std::vector<char>(memory.size(), 'y'));
}

TEST(File, ErrorsNameThePath) {
  const TempDir dir;
  EXPECT_EQ(code_of([&] { MappedFile::open(dir.path() + "/none"); }), ErrorCode::kFile);
  EXPECT_EQ(code_of([&] { MappedFile::open(dir.path()); }), ErrorCode::kFile);
  EXPECT_EQ(code_of([&] { write_file(dir.path() + "/no/folder", "x"); }), ErrorCode::kFile);
  write_file(dir.path() + "/file", "x");
  EXPECT_EQ(code_of([&] { make_directories(dir.path() + "/file/below"); }), ErrorCode::kFile);
  try {
    MappedFile::open(dir.path() + "/none");
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(dir.path() + "/none"), std::string::npos);
  }
}

TEST(File, AFolderThatMayNotBeWrittenLeavesTheOldFile) {
  const TempDir dir;
  write_file(dir.path() + "/a", "old");
  ASSERT_EQ(::chmod(dir.path().c_str(), 0500), 0);
  if (::geteuid() != 0) {  // root may write everywhere
    EXPECT_EQ(code_of([&] { write_file(dir.path() + "/a", "new"); }), ErrorCode::kFile);
    EXPECT_EQ(MappedFile::open(dir.path() + "/a")->text(), "old");
  }
  ASSERT_EQ(::chmod(dir.path().c_str(), 0700), 0);
}

TEST(File, MakesDirectoriesAndRemovesTemporaryOnes) {
  std::string path;
  {
    const TempDir dir;
    path = dir.path();
    make_directories(path + "/x/y/z");
    make_directories(path + "/x/y/z");
    EXPECT_TRUE(file_exists(path + "/x/y/z"));
    EXPECT_GT(free_bytes(path), 0u);
  }
  EXPECT_FALSE(file_exists(path));
}

TEST(File, ADuplicateReplacesWhatWasThereAndIsAFileOfItsOwn) {
  const TempDir dir;
  const std::string a = dir.path() + "/a", b = dir.path() + "/b";
  write_file(a, std::string(100000, 'n'));
  write_file(b, "old");
  ASSERT_TRUE(duplicate_file(a, b));
  EXPECT_EQ(MappedFile::read(b)->text(), std::string(100000, 'n'));
  std::fstream(b, std::ios::in | std::ios::out) << 'x';
  EXPECT_EQ(MappedFile::read(a)->text()[0], 'n') << "who writes into one does not write into the other";
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path()), {}), 2) << "nothing is left aside";
  EXPECT_FALSE(duplicate_file(dir.path() + "/missing", b));
  EXPECT_EQ(MappedFile::read(b)->text()[0], 'x');
  EXPECT_TRUE(duplicate_file(a, "/dev/null"));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST(File, ADuplicateOnAnotherDiskIsACopy) {
  if (!std::filesystem::is_directory("/dev/shm")) GTEST_SKIP() << "there is no other disk";
  const TempDir dir;
  const std::string a = dir.path() + "/a", b = "/dev/shm/heddle-" + std::to_string(::getpid());
  write_file(a, "new");
  ASSERT_TRUE(duplicate_file(a, b));
  const std::string copied(MappedFile::open(b)->text());
  std::filesystem::remove(b);
  EXPECT_EQ(copied, "new");
}

TEST(File, APipeGetsItsBytesInOrder) {
  const TempDir dir;
  const std::string path = dir.path() + "/pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] { std::getline(std::ifstream(path), got); });
  write_file(
      path, 6,
      [](const PutPart& put) {
        put(3, std::as_bytes(std::span("def", 3)));
        put(0, std::as_bytes(std::span("abc", 3)));
      },
      Sync::kYes);
  reader.join();
  EXPECT_EQ(got, "abcdef");
  EXPECT_TRUE(std::filesystem::is_fifo(path));
}

TEST(Hash, FieldsAreDelimited) {
  EXPECT_NE(Hasher().add("ab").add("c").finish(), Hasher().add("a").add("bc").finish());
  EXPECT_EQ(Hasher().add("ab").add(7).finish(), Hasher().add("ab").add(7).finish());
  EXPECT_EQ(hash_text("x").hex().size(), 32u);
}

TEST(Hash, LargeRangesDoNotDependOnThreads) {
  std::vector<uint32_t> data((40 << 20) / 4 + 3);
  std::iota(data.begin(), data.end(), 1u);
  const auto hash = [&](int threads) { return hash_large(data.data(), data.size() * 4, threads); };
  const Hash128 before = hash(1);
  EXPECT_EQ(before, hash(3));
  data.back() ^= 1;
  EXPECT_NE(before, hash(2));
  EXPECT_EQ(hash_large(nullptr, 0, 2), hash_large(nullptr, 0, 1));

  const TempDir dir;
  const std::string path = dir.path() + "/a";
  write_file(path, std::string_view(reinterpret_cast<const char*>(data.data()), data.size() * 4), Sync::kNo);
  EXPECT_EQ(hash_file(path, 2), hash(1));
}

}  // namespace
}  // namespace heddle
