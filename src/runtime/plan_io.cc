#include "runtime/plan_io.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/file/file.h"
#include "base/file/file_parts.h"
#include "base/memory.h"
#include "base/thread/thread.h"
#include "base/thread/thread_pool.h"
#include "runtime/archive.h"

namespace heddle::runtime {
namespace {

// Raised whenever the description or the header changes. 1: first; 2: steps and machine code of GPUs; 5: keys; 6:
// aliases; 7: text and defaults of inputs (plans of version 6 may hold wrong constants where a model has sparse ones);
// 8: values of inputs that decide branches; 9: pointers into operands.
constexpr uint32_t kVersion = 9;
constexpr char kMagic[8] = {'H', 'D', 'L', 'P', 'L', 'A', 'N', '\n'};
constexpr int64_t kPage = 4096;

struct Header {
  char magic[8];
  uint32_t version;
  uint32_t zero;
  uint64_t file_bytes;
  uint64_t table_entries;
  uint64_t description_bytes;  // the table and what follows it
  uint64_t zero2;
  Hash128 key;
  Hash128 checksum;  // of the description and of the header with 0 in this place
};
static_assert(sizeof(Header) == 80 && std::is_trivially_copyable_v<Header>);

Hash128 checksum_of(Header header, std::string_view description) {
  header.checksum = {};
  return Hasher().add({reinterpret_cast<const char*>(&header), sizeof header}).add(description).finish();
}

template <typename A, typename T>
void describe(A& a, T& value, int depth);

// Values one after the other, each as its type says.
template <typename A, typename... T>
void fields(A& a, int depth, T&... values) {
  (describe(a, values, depth), ...);
}

template <typename A>
void describe_fields(A& a, std::shared_ptr<const Plan>& body, int depth) {
  if (depth >= kMaxDepth) damaged("bodies are nested too deeply");
  if constexpr (A::kReading) {
    auto read = std::make_shared<Plan>();
    describe(a, *read, depth + 1);
    body = std::move(read);
  } else {
    describe(a, const_cast<Plan&>(*body), depth + 1);  // a Writer does not change what it describes
  }
}

template <typename A>
void describe_fields(A& a, KernelStep& step, int depth) {
  fields(a, depth, step.symbol, step.operands, step.tasks, step.scratch_bytes);
}

template <typename A>
void describe_fields(A& a, ReferenceStep& step, int depth) {
  fields(a, depth, step.ir, step.parameters, step.results);
}

template <typename A>
void describe_fields(A& a, CopyStep& step, int depth) {
  fields(a, depth, step.from, step.to);
}

template <typename A>
void describe_fields(A& a, LoopStep& step, int depth) {
  fields(a, depth, step.body, step.workspace, step.trip, step.condition, step.states, step.invariants,
         step.final_states, step.stacked, step.trip_bound);
}

template <typename A>
void describe_fields(A& a, BranchStep& step, int depth) {
  fields(a, depth, step.then_body, step.else_body, step.workspace, step.condition, step.captured, step.results);
}

template <typename A>
void describe_fields(A& a, TensorMapDesc& map, int depth) {
  fields(a, depth, map.element, map.operand, map.offset, map.extents, map.strides, map.box, map.swizzle_bytes,
         map.outer);
  bool windows = map.windows.has_value();
  a.flag(windows);
  if (!windows) return;
  if (!map.windows) map.windows.emplace();
  fields(a, depth, map.windows->size, map.windows->line, map.windows->first, map.windows->last, map.windows->steps);
}

template <typename A>
void describe_fields(A& a, PointerPatch& patch, int depth) {
  fields(a, depth, patch.argument, patch.offset, patch.operand, patch.begin);
}

template <typename A>
void describe_fields(A& a, CudaLaunch& launch, int depth) {
  fields(a, depth, launch.symbol, launch.grid, launch.block, launch.shared_bytes, launch.cluster, launch.cooperative,
         launch.early, launch.maps, launch.arguments, launch.pointers);
}

template <typename A>
void describe_fields(A& a, CudaStep& step, int depth) {
  fields(a, depth, step.launches, step.operands, step.counter_bytes);
}

template <size_t Index = 0>
void make_alternative(decltype(Step::action)& action, uint8_t index) {
  if constexpr (Index < std::variant_size_v<decltype(Step::action)>) {
    if (index != Index) return make_alternative<Index + 1>(action, index);
    action.emplace<Index>();
  } else {
    damaged("a step is of an unknown kind");
  }
}

template <typename A>
void describe_fields(A& a, Step& step, int depth) {
  auto kind = static_cast<uint8_t>(step.action.index());
  a.number(kind);
  if constexpr (A::kReading) make_alternative(step.action, kind);
  std::visit([&](auto& action) { describe(a, action, depth); }, step.action);
  fields(a, depth, step.label, step.origin, step.floor_seconds);
}

template <typename A>
void describe_fields(A& a, Port& port, int depth) {
  fields(a, depth, port.name, port.dtype, port.shape, port.buffer, port.index_bound);
  bool has_value = port.branch_value.has_value();
  int64_t value = port.branch_value.value_or(0);
  fields(a, depth, has_value, value);
  if constexpr (A::kReading) port.branch_value = has_value ? std::optional(value) : std::nullopt;
}

template <typename A>
void describe_fields(A& a, Buffer& buffer, int depth) {
  fields(a, depth, buffer.place, buffer.index, buffer.offset, buffer.dtype, buffer.shape, buffer.bytes, buffer.name);
}

template <typename A>
void describe_fields(A& a, Text& text, int depth) {
  Shape shape;
  std::vector<std::string> strings;
  if constexpr (!A::kReading) {
    shape = text.value.shape();
    strings = text.value.strings();
  }
  fields(a, depth, text.position, text.name, shape, strings);
  if constexpr (A::kReading) {
    if (dense_bytes(DType::kU8, shape) != static_cast<int64_t>(strings.size())) damaged("a text has a wrong shape");
    text.value = Tensor::of_strings(std::move(shape), std::move(strings));
  }
}

template <typename A>
void describe_fields(A& a, FixedInput& fixed, int depth) {
  fields(a, depth, fixed.input, fixed.value);
}

template <typename A>
void describe_fields(A& a, DefaultInput& input, int depth) {
  fields(a, depth, input.name, input.dtype, input.shape);
}

template <typename A>
void describe_fields(A& a, Alias& alias, int depth) {
  fields(a, depth, alias.output, alias.input, alias.partial);
}

template <typename A>
void describe_fields(A& a, Cubin& cubin, int depth) {
  fields(a, depth, cubin.bytes, cubin.symbols);
}

template <typename A>
void describe_fields(A& a, Plan& plan, int depth) {
  fields(a, depth, plan.model, plan.target, plan.inputs, plan.outputs, plan.fixed, plan.text_inputs, plan.texts,
         plan.defaults, plan.aliases, plan.buffers, plan.constants, plan.steps, plan.arena_bytes, plan.library,
         plan.cubins);
}

template <typename A, typename T>
void describe(A& a, T& value, int depth) {
  if constexpr (std::is_same_v<T, bool>) {
    a.flag(value);
  } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
    a.number(value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    a.text(value);
  } else if constexpr (std::is_same_v<T, Tensor>) {
    a.tensor(value);
  } else if constexpr (requires { std::tuple_size<T>::value; }) {
    for (auto& one : value) describe(a, one, depth);
  } else if constexpr (requires { value.emplace_back(); }) {
    a.sequence(value, [&](auto& one) { describe(a, one, depth); });
  } else {
    describe_fields(a, value, depth);
  }
}

int64_t section_start(size_t description_bytes) {
  return (static_cast<int64_t>(sizeof(Header) + description_bytes) + kPage - 1) / kPage * kPage;
}

// Where tensors lie; their hashes follow.
std::vector<TableEntry> lay_out(const std::vector<Tensor>& tensors) {
  std::vector<TableEntry> table(tensors.size());
  int64_t at = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    table[i].offset = at;
    table[i].bytes = static_cast<int64_t>(tensors[i].bytes());
    at += aligned(table[i].bytes);
  }
  return table;
}

// Calls each(i, worker) for all of a table.
template <typename Each>
void for_tensors(ThreadPool& pool, size_t count, const Each& each) {
  pool.run(static_cast<int64_t>(count), [&](int64_t begin, int64_t end, int worker) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) each(i, static_cast<size_t>(worker));
  });
}

int all_threads() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

struct Sections {
  std::vector<TableEntry> table;
  std::string_view description;
  int64_t tensors = 0;  // where they start
  Hash128 key;
};

// Checks everything of the frame except the tensors' own checksums.
Sections open_sections(std::span<const std::byte> file) {
  Header header;
  if (file.size() < sizeof header) damaged("the file is too short for a plan");
  std::memcpy(&header, file.data(), sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) damaged("the file does not begin as a plan does");
  if (header.version != kVersion) damaged("the plan was made by another version of Heddle");
  if (header.file_bytes != file.size() || header.zero != 0 || header.zero2 != 0) damaged("the file is incomplete");
  const size_t rest = file.size() - sizeof header;
  if (header.description_bytes > rest || header.table_entries > header.description_bytes / sizeof(TableEntry)) {
    damaged("the header is inconsistent");
  }
  const std::string_view description(reinterpret_cast<const char*>(file.data()) + sizeof header,
                                     header.description_bytes);
  if (checksum_of(header, description) != header.checksum) damaged("the checksum of the description is wrong");

  Sections sections;
  sections.key = header.key;
  sections.tensors = section_start(header.description_bytes);
  sections.table.resize(header.table_entries);
  const size_t table_bytes = header.table_entries * sizeof(TableEntry);
  if (table_bytes > 0) std::memcpy(sections.table.data(), description.data(), table_bytes);
  sections.description = description.substr(table_bytes);
  const int64_t available = static_cast<int64_t>(file.size()) - sections.tensors;
  for (const TableEntry& entry : sections.table) {
    int64_t end = 0;
    if (entry.offset < 0 || entry.bytes < 0 || entry.offset % kAlignment != 0 ||
        __builtin_add_overflow(entry.offset, entry.bytes, &end) || end > available) {
      damaged("a tensor lies outside the file");
    }
  }
  return sections;
}

void check_tensors(std::span<const std::byte> file, const Sections& sections, int threads) {
  std::atomic<bool> good = true;
  const std::unique_ptr<ThreadPool> pool = pool_of_up_to(threads);
  pool->run(static_cast<int64_t>(sections.table.size()), [&](int64_t begin, int64_t end, int) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      const TableEntry& entry = sections.table[i];
      const std::byte* data = file.data() + sections.tensors + entry.offset;
      if (hash_large(data, static_cast<size_t>(entry.bytes), 1) != entry.hash) good = false;
    }
  });
  if (!good) damaged("the checksum of a tensor is wrong");
}

// What precedes the tensors, which begin at start().
class Front {
 public:
  Front(const std::string& described, size_t entries)
      : entries_(entries), bytes_(entries * sizeof(TableEntry) + described.size()), described_(described) {}

  int64_t start() const { return section_start(bytes_); }

  std::string text(const std::vector<TableEntry>& table, const Hash128& key) const {
    const std::string description =
        std::string(reinterpret_cast<const char*>(table.data()), entries_ * sizeof(TableEntry)) + described_;
    Header header{};
    std::memcpy(header.magic, kMagic, sizeof kMagic);
    header.version = kVersion;
    header.table_entries = entries_;
    header.description_bytes = bytes_;
    header.file_bytes = static_cast<uint64_t>(file_bytes(table));
    header.key = key;
    header.checksum = checksum_of(header, description);
    std::string text(reinterpret_cast<const char*>(&header), sizeof header);
    text += description;
    text.resize(static_cast<size_t>(start()));
    return text;
  }
  int64_t file_bytes(const std::vector<TableEntry>& table) const {
    return start() + (table.empty() ? 0 : table.back().offset + aligned(table.back().bytes));
  }

 private:
  size_t entries_, bytes_;
  const std::string& described_;
};

}  // namespace

void write_plan(const Plan& plan, const std::string& path, Sync sync, const ConstantMakers& makers) {
  Writer writer;
  describe(writer, const_cast<Plan&>(plan), 0);  // a Writer does not change what it describes
  const std::vector<Tensor>& tensors = writer.tensors();
  std::vector<TableEntry> table = lay_out(tensors);
  const Front front(writer.out(), table.size());
  size_t largest = 0;
  for (const Tensor& tensor : tensors) {
    if (makers.contains(tensor.data())) largest = std::max(largest, tensor.bytes());
  }
  write_file(
      path, static_cast<uint64_t>(front.file_bytes(table)),
      [&](const PutPart& put) {
        const std::unique_ptr<ThreadPool> pool = pool_of_up_to(all_threads());
        std::vector<std::shared_ptr<std::byte>> scratch(static_cast<size_t>(pool->threads()));
        for_tensors(*pool, tensors.size(), [&](size_t i, size_t worker) {
          const void* data = tensors[i].data();
          if (const auto maker = makers.find(data); maker != makers.end()) {
            if (scratch[worker] == nullptr) scratch[worker] = allocate(largest, "a constant of the plan");
            maker->second(scratch[worker].get());
            data = scratch[worker].get();
          }
          table[i].hash = hash_large(data, tensors[i].bytes(), 1);
          put(static_cast<uint64_t>(front.start() + table[i].offset),
              {static_cast<const std::byte*>(data), tensors[i].bytes()});
        });
        const std::string text = front.text(table, plan.key);
        put(0, std::as_bytes(std::span(text.data(), text.size())));
      },
      sync);
}

void make_constants(Plan& plan, const ConstantMakers& makers) {
  if (makers.empty()) return;
  const std::unique_ptr<ThreadPool> pool = pool_of_up_to(all_threads());
  for_tensors(*pool, plan.constants.size(), [&](size_t i, size_t) {
    Tensor& constant = plan.constants[i];
    const auto maker = makers.find(constant.data());
    if (maker == makers.end()) return;
    Tensor made = Tensor::unfilled(constant.dtype(), constant.shape());
    maker->second(made.mutable_data());
    constant = std::move(made);
  });
}

std::shared_ptr<const Plan> parse_plan(std::span<const std::byte> bytes, std::shared_ptr<const void> owner, int threads,
                                       const std::optional<Hash128>& key) {
  HEDDLE_CHECK(reinterpret_cast<uintptr_t>(bytes.data()) % kAlignment == 0);
  const Sections sections = open_sections(bytes);
  if (key && sections.key != *key) damaged("it was made from another model or with other options");
  if (threads > 0) check_tensors(bytes, sections, threads);
  Reader reader(sections.description);
  reader.set_tensors(bytes.data() + sections.tensors, std::move(owner), sections.table);
  auto plan = std::make_shared<Plan>();
  plan->key = sections.key;
  describe(reader, *plan, 0);
  if (!reader.at_end()) damaged("there is something after its end");
  validate(*plan);
  return plan;
}

std::shared_ptr<const Plan> read_plan(const std::string& path, int threads) {
  const std::shared_ptr<const MappedFile> file = MappedFile::read(path, From::kOwn, threads);
  try {
    return parse_plan(file->bytes(), file, std::max(threads, 1));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kDamagedArtefact) throw;
    throw Error(error.code(), path, error.why(), error.remedy());
  }
}

bool is_plan_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;  // reading a pipe could wait forever
  std::ifstream file(path, std::ios::binary);
  char magic[sizeof kMagic] = {};
  return file.read(magic, sizeof magic) && std::memcmp(magic, kMagic, sizeof kMagic) == 0;
}

}  // namespace heddle::runtime
