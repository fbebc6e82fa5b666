#include "ort/context.h"

#include <fcntl.h>

#include <filesystem>

#include "base/check.h"
#include "base/file/trust.h"
#include "heddle/version.h"
#include "runtime/plan_io.h"

namespace heddle::ort {
namespace {

namespace fs = std::filesystem;

constexpr const char *kContent = "ep_cache_context", *kEmbedded = "embed_mode", *kSource = "source";

// A plan is machine code.
void require_trust(const std::string& path) {
  if (path.empty()) return;  // the caller's bytes
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return;  // a name that the caller gave to bytes
  if (const auto distrust = distrust_of_file(file.get(), path)) {
    fail(ErrorCode::kFile, distrust->where, distrust->why, distrust->remedy);
  }
}

std::string context_path(const std::string& model_path, const Options& options) {
  if (!options.context_path.empty()) return options.context_path;
  if (model_path.empty()) {
    fail(ErrorCode::kInvalidArgument, "ep.context_file_path",
         "the model was loaded from memory, so nothing says where plans are to be written", "Set it");
  }
  return fs::path(model_path).replace_extension().string() + "_ctx.onnx";
}

std::string plan_name(const std::string& model, int number) {
  return fmt::format("{}_{}.plan", fs::path(model).stem().string(), number);
}

// The attributes of a new node. ONNX Runtime copies them.
class Attributes {
 public:
  explicit Attributes(const Runtime& runtime) : runtime_(runtime) {}
  ~Attributes() {
    for (OrtOpAttr* const attribute : all_) runtime_.api()(api::kReleaseOpAttr, attribute);
  }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;

  void add(const char* name, int64_t value) { add(name, &value, 1, AttributeType::kInt); }
  void add(const char* name, const std::string& value) {
    add(name, value.data(), static_cast<int>(value.size()), AttributeType::kString);
  }
  std::vector<OrtOpAttr*>& all() { return all_; }

 private:
  void add(const char* name, const void* data, int length, AttributeType type) {
    all_.push_back(runtime_.get<OrtOpAttr*>(api::kCreateOpAttr, name, data, length, type));
  }

  const Runtime& runtime_;
  std::vector<OrtOpAttr*> all_;
};

std::vector<const char*> pointers_to(const std::vector<std::string>& names) {
  std::vector<const char*> pointers;
  for (const std::string& name : names) pointers.push_back(name.c_str());
  return pointers;
}

// The plan's file: one beside the model, without a way out of its folder.
std::string plan_path(const GraphNode& node, const std::string& name, const std::string& model_path,
                      const Options& options) {
  const fs::path file(name);
  if (name.empty() || file.has_parent_path() || file == ".." || file == ".") {
    fail(ErrorCode::kMalformedModel, fmt::format("node '{}' ({})", node.name, node.op_type),
         fmt::format("\"{}\" is not the name of a file beside the model", name), "Make the model with plans again");
  }
  const std::string& model = model_path.empty() ? options.context_path : model_path;
  if (model.empty()) {
    fail(ErrorCode::kMissingData, fmt::format("node '{}' ({})", node.name, node.op_type),
         fmt::format("its plan is in the file {}, and the model was loaded from memory", name),
         "Set ep.context_file_path to the path of the model");
  }
  const std::string path = (fs::path(model).parent_path() / file).string();
  if (file_exists(path)) return path;
  fail(ErrorCode::kMissingData, fmt::format("node '{}' ({})", node.name, node.op_type),
       fmt::format("the file {} with its plan is missing", path), "Copy it to the model's folder");
}

}  // namespace

bool is_context(const Runtime& runtime, const GraphNode& node) {
  return node.op_type == "EPContext" && node.domain == "com.microsoft" &&
         text_attribute(runtime, node.node, kSource) == kName;
}

OrtNode* make_context(const Runtime& runtime, const FusedNode& node, int number, const std::string& model_path,
                      const Options& options) {
  const FusedNode::Place& place = node.place();
  const std::string model = context_path(model_path, options);
  Attributes attributes(runtime);
  attributes.add("main_context", 1);
  attributes.add(kEmbedded, options.embeds_plans ? 1 : 0);
  attributes.add(kSource, kName);
  attributes.add("partition_name", place.name);
  attributes.add("ep_sdk_version", version());
  const runtime::Plan& plan = *node.model().primary().plan;
  if (options.embeds_plans) {
    const TempDir folder("heddle-ort");
    const std::string path = folder.path() + "/embedded.plan";
    runtime::write_plan(plan, path, Sync::kNo);
    attributes.add(kContent, std::string(MappedFile::read(path)->text()));
  } else {
    const std::string name = plan_name(model, number);
    runtime::write_plan(plan, (fs::path(model).parent_path() / name).string());
    attributes.add(kContent, name);
  }
  const auto inputs = pointers_to(place.inputs), outputs = pointers_to(place.outputs);
  OrtNode* context = nullptr;
  runtime.check(runtime.editor_api()(editor_api::kCreateNode, "EPContext", "com.microsoft", place.name.c_str(),
                                     inputs.data(), inputs.size(), outputs.data(), outputs.size(),
                                     attributes.all().data(), attributes.all().size(), &context));
  return context;
}

std::unique_ptr<FusedNode> load_context(const Runtime& runtime, const GraphNode& node, FusedNode::Place place,
                                        const std::string& model_path, const Options& options) {
  require_trust(model_path);
  const std::string content = text_attribute(runtime, node.node, kContent);
  const bool embedded = int_attribute(runtime, node.node, kEmbedded, 1) != 0;
  std::optional<TempDir> folder;
  if (embedded) folder.emplace("heddle-ort");
  const std::string path = embedded ? folder->path() + "/embedded.plan" : plan_path(node, content, model_path, options);
  if (embedded) write_file(path, content, Sync::kNo);
  if (!runtime::is_plan_file(path)) {
    fail(ErrorCode::kDamagedArtefact, fmt::format("node '{}' ({})", node.name, node.op_type), "its content is no plan",
         "Make the model with plans again");
  }
  return std::make_unique<FusedNode>(runtime, std::move(place), path, nullptr, options);
}

}  // namespace heddle::ort
