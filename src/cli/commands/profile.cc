#include "base/check.h"
#include "base/file/file.h"
#include "cli/arguments.h"
#include "cli/commands/profile_text.h"
#include "cli/output.h"
#include "cli/signals.h"
#include "cli/support.h"
#include "driver/options/options.h"
#include "driver/report/profile_model.h"
#include "driver/shapes/guess.h"
#include "driver/verify/random_inputs.h"
#include "profile/exports.h"
#include "profile/json.h"
#include "profile/page.h"
#include "profile/program/launcher.h"
#include "profile/rank_advice.h"
#include "runtime/plan_io.h"

namespace heddle::cli {
namespace {

profile::Profile read_profile(const std::string& path) {
  const auto file = MappedFile::read(path);
  return profile::parse(file->text(), path);
}

void write(const std::string& path, const std::string& content) {
  if (!path.empty()) write_file(path, content, Sync::kNo);
}

// Into the files that the command line names; to stdout as JSON, or as text for people.
template <typename Content, typename Print>
void show(const Arguments& arguments, const Content& content, const std::string& title, const Print& print) {
  const std::string json = profile::to_json(content);
  write(arguments.output, json);
  if (!arguments.profile.html.empty()) write(arguments.profile.html, profile::page(json, title));
  if (arguments.json) {
    print_raw(json + "\n");
  } else {
    print();
    if (!arguments.profile.html.empty()) print_line("page: " + arguments.profile.html);
  }
}

void show(const Arguments& arguments, const profile::Profile& profile) {
  const ProfileArguments& p = arguments.profile;
  if (!p.folded.empty()) write(p.folded, profile::folded_stacks(profile, 0));
  if (!p.speedscope.empty()) write(p.speedscope, profile::speedscope(profile));
  if (!p.pprof.empty()) write(p.pprof, profile::pprof(profile));
  if (!p.trace.empty()) write(p.trace, profile::perfetto(profile));
  show(arguments, profile, profile.title, [&] { print_profile(profile, p.top); });
}

}  // namespace

int profile_command(const Arguments& arguments) {
  if (runtime::is_plan_file(arguments.model)) {
    fail(ErrorCode::kInvalidArgument, arguments.model, "a plan no longer knows the nodes of its model",
         "Profile the ONNX model");
  }
  const Prepared prepared = prepare(arguments);
  const driver::Settings settings = driver::resolve(prepared.options);
  driver::require_device(settings);
  const driver::CompiledModel model = driver::compile_model(arguments.model, prepared.options);
  tell_guess(arguments, prepared.options, driver::inputs_of(*model.plan));
  tell_branches(driver::branch_guess(*model.plan, prepared.inputs));
  show(arguments, driver::profile_model(model, settings.target,
                                        {.seconds = arguments.seconds,
                                         .threads = settings.target.cpu.threads,
                                         .device = settings.device,
                                         .seed = arguments.seed,
                                         .inputs = prepared.inputs}));
  return 0;
}

int profile_program_command(const Arguments& arguments) {
  const ProfileArguments& p = arguments.profile;
  const profile::LaunchedProgram program = profile::profile_program({.command = p.program,
                                                                     .rate = p.rate,
                                                                     .gpu = !p.no_gpu,
                                                                     .all_frames = p.all_frames,
                                                                     .operators = p.operators,
                                                                     .started = leave_signals_to});
  if (program.profile) {
    show(arguments, *program.profile);
  } else {
    tell("warning", program.why_not);
  }
  return program.status;
}

int profile_show_command(const Arguments& arguments) {
  show(arguments, read_profile(arguments.profile.files.at(0)));
  return 0;
}

int profile_diff_command(const Arguments& arguments) {
  const std::vector<std::string>& files = arguments.profile.files;
  const profile::Profile older = read_profile(files.at(0));
  const profile::Difference difference = profile::difference(older, read_profile(files.at(1)));
  show(arguments, difference, difference.profile.title, [&] { print_difference(difference, arguments.profile.top); });
  return 0;
}

int profile_merge_command(const Arguments& arguments) {
  std::vector<profile::Profile> parts;
  for (const std::string& file : arguments.profile.files) parts.push_back(read_profile(file));
  show(arguments, profile::merge_processes(parts));
  return 0;
}

}  // namespace heddle::cli
