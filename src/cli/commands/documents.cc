// The commands that print what is made of the command line itself: completions and the manual page.
#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/command_tree.h"
#include "cli/support.h"
#include "zoo/zoo.h"

namespace heddle::cli {
namespace {

CommandInfo tree(const Arguments& arguments) {
  CommandInfo root = describe(*arguments.app);
  const auto zoo = std::find_if(root.commands.begin(), root.commands.end(),
                                [](const auto& command) { return command.name == "zoo"; });
  for (OptionInfo& option : zoo->options) {
    if (!option.positional) continue;
    for (const zoo::ModelInfo& model : zoo::models()) option.choices.emplace_back(model.name);
  }
  return root;
}

}  // namespace

int completion_command(const Arguments& arguments) {
  print_raw(completion_script(tree(arguments), arguments.shell) + "\n");
  return 0;
}

int manual_command(const Arguments& arguments) {
  print_raw(manual_page(tree(arguments), arguments.app->get_footer()) + "\n");
  return 0;
}

}  // namespace heddle::cli
