#include "driver/report/modules.h"

#include <algorithm>
#include <map>
#include <set>

namespace heddle::driver {
namespace {

constexpr size_t kMostItems = 60;     // shown one by one; of more, modules are
constexpr size_t kMostModules = 48;   // boxes of a picture of modules
constexpr size_t kMostDepth = 32;     // of modules in modules; a name may have any number of slashes
constexpr size_t kMostToJoin = 2000;  // boxes; whether two may be joined takes a walk over the graph

// A module and what lies in it. The path of an item is that of its module.
struct Module {
  std::string path;
  std::map<std::string, size_t> children;  // by name
  std::vector<size_t> direct;              // items of this module and of none below it
  size_t items = 0;                        // with those below
  bool open = false;
};

class Tree {
 public:
  explicit Tree(const std::vector<std::string>& names) : modules_(1) {
    for (size_t i = 0; i < names.size(); ++i) add(i, names[i]);
  }

  // By item: the outermost module that stays closed; npos where the item stands for itself.
  std::vector<size_t> closed_modules(size_t most, size_t count) {
    open_largest(most);
    std::vector<size_t> found(count, std::string::npos);
    assign(0, std::string::npos, found);
    return found;
  }

  const std::string& path(size_t module) const { return modules_[module].path; }

 private:
  void add(size_t item, const std::string& name) {
    size_t at = 0, begin = 0, depth = 0;
    ++modules_[0].items;
    for (size_t end = name.find('/'); end != std::string::npos; begin = end + 1, end = name.find('/', begin)) {
      if (end == begin) continue;
      if (++depth > kMostDepth) break;
      const auto [child, added] = modules_[at].children.try_emplace(name.substr(begin, end - begin), modules_.size());
      const size_t next = child->second;
      if (added) {
        const std::string path = (at == 0 ? "" : modules_[at].path + "/") + name.substr(begin, end - begin);
        modules_.push_back({path, {}, {}, 0, false});
      }
      at = next;
      ++modules_[at].items;
    }
    modules_[at].direct.push_back(item);
  }

  // Opens modules, the largest first, while their boxes are no more than `most`.
  void open_largest(size_t most) {
    size_t boxes = 1;
    std::set<size_t> closed = {0};
    while (true) {
      size_t largest = std::string::npos;
      for (const size_t m : closed) {
        const size_t inside = modules_[m].children.size() + modules_[m].direct.size();
        if (inside < 2 && modules_[m].children.empty()) continue;
        if (boxes - 1 + inside > most && m != 0) continue;
        if (largest == std::string::npos || modules_[m].items > modules_[largest].items) largest = m;
      }
      if (largest == std::string::npos) return;
      Module& module = modules_[largest];
      module.open = true;
      boxes += module.children.size() + module.direct.size() - 1;
      closed.erase(largest);
      for (const auto& [name, child] : module.children) closed.insert(child);
    }
  }

  void assign(size_t m, size_t closed, std::vector<size_t>& found) const {
    const Module& module = modules_[m];
    if (closed == std::string::npos && !module.open) closed = m;
    for (const size_t item : module.direct) found[item] = closed;
    for (const auto& [name, child] : module.children) assign(child, closed, found);
  }

  std::vector<Module> modules_;
};

// Boxes that are joined one after the other, as long as no cycle arises.
class Joiner {
 public:
  Joiner(const std::vector<size_t>& module_of, const std::vector<std::vector<size_t>>& reads) {
    std::vector<size_t> box_of(module_of.size());
    for (size_t i = 0; i < module_of.size(); ++i) {
      const bool same = i > 0 && module_of[i] != std::string::npos && module_of[i] == module_of[i - 1];
      if (!same) boxes_.push_back({module_of[i], {}, {}, {}});
      box_of[i] = boxes_.size() - 1;
      boxes_.back().items.push_back(i);
      for (const size_t from : reads[i]) connect(box_of[from], box_of[i]);
    }
  }

  void join_modules() {
    if (boxes_.size() > kMostToJoin) return;
    std::map<size_t, std::vector<size_t>> parts;  // of a module, those that could not be joined
    for (size_t b = 0; b < boxes_.size(); ++b) {
      if (boxes_[b].module == std::string::npos) continue;
      std::vector<size_t>& earlier = parts[boxes_[b].module];
      const auto into = std::find_if(earlier.begin(), earlier.end(), [&](size_t a) { return may_join(a, b); });
      if (into == earlier.end()) {
        earlier.push_back(b);
      } else {
        join(*into, b);
      }
    }
  }

  std::vector<ModuleBox> in_order(const Tree& tree) {
    std::vector<ModuleBox> ordered;
    std::map<size_t, size_t> open;  // box -> inputs that are not there yet
    std::set<std::pair<size_t, size_t>> ready;
    for (size_t b = 0; b < boxes_.size(); ++b) {
      if (boxes_[b].items.empty()) continue;
      open[b] = boxes_[b].inputs.size();
      if (open[b] == 0) ready.emplace(boxes_[b].items.front(), b);
    }
    while (!ready.empty()) {
      const size_t b = ready.begin()->second;
      ready.erase(ready.begin());
      const bool single = boxes_[b].items.size() == 1;
      ordered.push_back({single ? "" : tree.path(boxes_[b].module), boxes_[b].items});
      for (const size_t reader : boxes_[b].readers) {
        if (--open[reader] == 0) ready.emplace(boxes_[reader].items.front(), reader);
      }
    }
    return ordered;
  }

 private:
  struct Box {
    size_t module;
    std::vector<size_t> items;
    std::set<size_t> inputs, readers;
  };

  void connect(size_t from, size_t to) {
    if (from == to) return;
    boxes_[from].readers.insert(to);
    boxes_[to].inputs.insert(from);
  }

  // Whether a path of more than one edge leads from one to the other.
  bool detours(size_t from, size_t to) const {
    std::set<size_t> seen;
    std::vector<size_t> open(boxes_[from].readers.begin(), boxes_[from].readers.end());
    std::erase(open, to);
    while (!open.empty()) {
      const size_t b = open.back();
      open.pop_back();
      if (!seen.insert(b).second) continue;
      if (b == to) return true;
      open.insert(open.end(), boxes_[b].readers.begin(), boxes_[b].readers.end());
    }
    return false;
  }

  bool may_join(size_t a, size_t b) const { return !detours(a, b) && !detours(b, a); }

  void join(size_t a, size_t b) {
    for (const size_t from : boxes_[b].inputs) {
      boxes_[from].readers.erase(b);
      connect(from, a);
    }
    for (const size_t to : boxes_[b].readers) {
      boxes_[to].inputs.erase(b);
      connect(a, to);
    }
    boxes_[a].items.insert(boxes_[a].items.end(), boxes_[b].items.begin(), boxes_[b].items.end());
    boxes_[b] = {boxes_[b].module, {}, {}, {}};
  }

  std::vector<Box> boxes_;
};

}  // namespace

namespace {

FoldedItems collapsed(std::vector<ModuleBox> parts, const std::vector<std::string>& signatures, size_t shortest) {
  FoldedItems folded{std::move(parts), {}, {}};
  std::vector<std::string> texts;
  for (const ModuleBox& part : folded.parts) {
    std::string& text = texts.emplace_back();
    for (const size_t item : part.items) text += signatures[item] + "\n";
    folded.shown_as.push_back(folded.shown_as.size());
  }
  for (const Repeat& repeat : find_repeats(texts)) {
    if (repeat.period < shortest) continue;
    for (size_t i = 0; i < repeat.period * repeat.count; ++i) {
      folded.shown_as[repeat.begin + i] = repeat.begin + i % repeat.period;
    }
    folded.repeats.push_back(repeat);
  }
  return folded;
}

// By place in the sequence: how many earlier items are read there or later.
std::vector<size_t> crossings(const std::vector<std::vector<size_t>>& reads) {
  std::vector<size_t> last(reads.size());  // by item: its last reader
  for (size_t i = 0; i < reads.size(); ++i) {
    last[i] = i;
    for (const size_t from : reads[i]) last[from] = i;
  }
  std::vector<size_t> count(reads.size() + 1);
  for (size_t i = 0; i < reads.size(); ++i) {
    if (last[i] > i) ++count[i + 1], --count[last[i] + 1];  // modulo: sums are never negative
  }
  for (size_t i = 1; i < count.size(); ++i) count[i] += count[i - 1];
  return count;
}

// Stretches of the sequence, which end where few values pass: between the blocks of a network whose names tell nothing.
std::vector<ModuleBox> gather_stretches(const std::vector<std::string>& names,
                                        const std::vector<std::vector<size_t>>& reads, size_t most) {
  const std::vector<size_t> passing = crossings(reads);
  const size_t wanted = (names.size() + most - 1) / most;
  std::vector<ModuleBox> boxes;
  for (size_t begin = 0; begin < names.size();) {
    size_t end = std::min(begin + wanted, names.size());
    const size_t furthest = std::min(begin + 2 * wanted, names.size());
    for (size_t at = end + 1; at <= furthest; ++at) {
      if (passing[at] < passing[end]) end = at;
    }
    ModuleBox box;
    for (size_t i = begin; i < end; ++i) box.items.push_back(i);
    if (box.items.size() > 1) box.name = names[begin] + " .. " + names[end - 1];
    boxes.push_back(std::move(box));
    begin = end;
  }
  return boxes;
}

}  // namespace

size_t FoldedItems::shown() const {
  size_t count = 0;
  for (size_t p = 0; p < shown_as.size(); ++p) count += shown_as[p] == p ? 1 : 0;
  return count;
}

std::vector<size_t> FoldedItems::times() const {
  std::vector<size_t> times(parts.size(), 1);
  for (const Repeat& repeat : repeats) {
    for (size_t i = 0; i < repeat.period; ++i) times[repeat.begin + i] = repeat.count;
  }
  return times;
}

FoldedItems fold_items(const std::vector<std::string>& names, const std::vector<std::vector<size_t>>& reads,
                       const std::vector<std::string>& signatures, Modules modules) {
  std::vector<ModuleBox> single;
  for (size_t i = 0; i < names.size(); ++i) single.push_back({"", {i}});
  FoldedItems items = collapsed(std::move(single), signatures, 2);  // a few equal boxes in a row say more than a frame
  if (modules == Modules::kOpen || items.shown() <= kMostItems) return items;
  FoldedItems folded = collapsed(gather_modules(names, reads, kMostModules), signatures, 1);
  if (folded.shown() <= 2 * kMostModules) return folded;
  return collapsed(gather_stretches(names, reads, kMostModules), signatures, 1);
}

std::vector<ModuleBox> gather_modules(const std::vector<std::string>& names,
                                      const std::vector<std::vector<size_t>>& reads, size_t most) {
  Tree tree(names);
  Joiner joiner(tree.closed_modules(most, names.size()), reads);
  joiner.join_modules();
  return joiner.in_order(tree);
}

}  // namespace heddle::driver
