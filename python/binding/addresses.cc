#include "addresses.h"

#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "errors.h"
#include "heddle/tensor.h"
#include "torch_tensors.h"

namespace nb = nanobind;

namespace heddle::python {
namespace {

// The addresses of a list of PyTorch tensors with known layouts, and those of the last call.
class Addresses {
 public:
  static constexpr int64_t kAbsent = 0, kOtherLayout = -1;

  Addresses(const TorchTensors& tensors, const nb::list& layouts) : tensors_(tensors) {
    for (const nb::handle one : layouts) layouts_.push_back({nb::cast<Shape>(one[0]), nb::cast<Shape>(one[1])});
  }

  // Returns the addresses, or None if all are those of the last call. kAbsent stands for None, kOtherLayout for a
  // tensor of another layout, which its owner may move without changing its address: such a list always counts as new.
  nb::object changed(const nb::list& tensors) {
    if (nb::len(tensors) != layouts_.size()) {
      refuse_argument("tensors", "the list has another length than the list of layouts", "Give one tensor per layout");
    }
    bool is_same = taken_.size() == layouts_.size();
    taken_.resize(layouts_.size());
    for (size_t i = 0; i < layouts_.size(); ++i) {
      const int64_t address = address_of(PyList_GetItem(tensors.ptr(), static_cast<Py_ssize_t>(i)), layouts_[i]);
      is_same = is_same && address == taken_[i] && address != kOtherLayout;
      taken_[i] = address;
    }
    return is_same ? nb::none() : nb::cast(taken_);
  }

  void forget() { taken_.clear(); }

 private:
  struct Layout {
    Shape shape, strides;
  };

  int64_t address_of(PyObject* tensor, const Layout& layout) const {
    if (tensor == Py_None) return kAbsent;
    const std::optional<void*> data = tensors_.data_if(tensor, layout.shape, layout.strides);
    return data ? reinterpret_cast<int64_t>(*data) : kOtherLayout;
  }

  const TorchTensors& tensors_;
  std::vector<Layout> layouts_;
  std::vector<int64_t> taken_;
};

}  // namespace

void register_addresses(nb::module_& module) {
  nb::class_<Addresses>(module, "Addresses", "The addresses of tensors with known layouts, and whether they changed.")
      .def(nb::init<const TorchTensors&, const nb::list&>(), nb::arg("tensors"), nb::arg("layouts"),
           nb::keep_alive<1, 2>())
      .def("changed", &Addresses::changed, nb::arg("tensors"))
      .def("forget", &Addresses::forget);
}

}  // namespace heddle::python
