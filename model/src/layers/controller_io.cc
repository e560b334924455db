#include "layers/controller_io.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "aah/error.h"
#include "aah/model/torch_parallel.h"

namespace aah {
namespace {

// float32 with a unit last stride, copied only where it is not so already.
at::Tensor AsFloat(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.detach().to(at::kFloat);
  return plain.stride(3) == 1 ? plain : plain.contiguous();
}

ConstView4<float> ViewOf(const at::Tensor& tensor) {
  ConstView4<float> view;
  view.data = tensor.const_data_ptr<float>();
  for (size_t axis = 0; axis < 4; ++axis) {
    view.shape[axis] = tensor.size(static_cast<int64_t>(axis));
    view.strides[axis] = tensor.stride(static_cast<int64_t>(axis));
  }
  return view;
}

template <typename Element>
constexpr at::ScalarType kType = at::kFloat;
template <>
constexpr at::ScalarType kType<int32_t> = at::kInt;
template <>
constexpr at::ScalarType kType<double> = at::kDouble;

template <typename Element>
at::Tensor ToTensor(std::span<const Element> values) {
  at::Tensor tensor =
      at::empty({static_cast<int64_t>(values.size())}, at::TensorOptions(kType<Element>));
  std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<Element>());
  return tensor;
}

// A field of ControlState into a PolicyState.
struct FieldSaver {
  const std::string& prefix;
  PolicyState& state;
  Json& json;

  void operator()(const char* name, int64_t field) const { json[name] = field; }
  template <typename Element>
  void operator()(const char* name, const std::vector<Element>& field) const {
    state.tensors[prefix + name] = ToTensor(std::span<const Element>(field));
  }
  void operator()(const char* name, const std::vector<FeatureRow>& field) const {
    const float* first = field.empty() ? nullptr : field.front().data();
    state.tensors[prefix + name] = ToTensor(std::span(first, field.size() * kFeatureCount));
  }
};

// And back.
struct FieldReader {
  const std::string& prefix;
  const Json& json;
  StateReader& reader;

  void operator()(const char* name, int64_t& field) const {
    field = JsonMember<int64_t>(json, name, reader.what());
  }
  template <typename Element>
  void operator()(const char* name, std::vector<Element>& field) const {
    const std::span<const Element> values = reader.Vector<Element>(prefix + name);
    field.assign(values.begin(), values.end());
  }
  void operator()(const char* name, std::vector<FeatureRow>& field) const {
    const std::span<const float> values = reader.Vector<float>(prefix + name);
    AAH_CHECK(values.size() % kFeatureCount == 0, reader.what(), ": ", prefix, name,
              ": expected rows of ", kFeatureCount, " features, got ", values.size(), " numbers");
    field.resize(values.size() / kFeatureCount);
    if (!values.empty()) std::memcpy(field.data(), values.data(), values.size_bytes());
  }
};

}  // namespace

void AddProjections(const AttentionInputs& inputs, ProjectionSums& sums) {
  const at::Tensor query = AsFloat(inputs.query);
  const at::Tensor key = AsFloat(inputs.key);
  const at::Tensor value = AsFloat(inputs.value);
  sums.AddBatch(ViewOf(query), ViewOf(key), ViewOf(value), TorchParallel());
}

void AddStatistics(const LayerStatistics& statistics, StatisticSums& sums) {
  const at::Tensor rows =
      at::stack({statistics.entropy, statistics.norm, statistics.usage}).to(at::kFloat);
  const auto row = [&](size_t index) {
    const auto heads = static_cast<size_t>(rows.size(1));
    return std::span(rows.const_data_ptr<float>() + index * heads, heads);
  };
  sums.AddPass(row(0), row(1), row(2));
}

at::Tensor VectorOf(std::span<const float> values) { return ToTensor(values); }
at::Tensor VectorOf(std::span<const double> values) { return ToTensor(values); }
at::Tensor VectorOf(std::span<const int32_t> values) { return ToTensor(values); }

template <typename Element>
std::span<const Element> StateReader::Vector(const std::string& name) {
  const auto found = state_.tensors.find(name);
  AAH_CHECK(found != state_.tensors.end(), what_, ": ", name, " is missing");
  const at::Tensor& tensor = found->second;
  AAH_CHECK(tensor.scalar_type() == kType<Element> && tensor.dim() == 1 && tensor.is_contiguous(),
            what_, ": ", name, ": expected a vector of ", c10::toString(kType<Element>), ", got ",
            c10::toString(tensor.scalar_type()), " of ", tensor.dim(), " dimensions");
  ++read_;
  return {tensor.const_data_ptr<Element>(), static_cast<size_t>(tensor.numel())};
}

template <typename Element>
void StateReader::ReadInto(const std::string& name, std::span<Element> values) {
  const std::span<const Element> stored = Vector<Element>(name);
  AAH_CHECK(stored.size() == values.size(), what_, ": ", name, ": expected ", values.size(),
            " numbers, got ", stored.size());
  std::copy(stored.begin(), stored.end(), values.begin());
}

template std::span<const float> StateReader::Vector<float>(const std::string&);
template std::span<const double> StateReader::Vector<double>(const std::string&);
template std::span<const int32_t> StateReader::Vector<int32_t>(const std::string&);
template void StateReader::ReadInto<float>(const std::string&, std::span<float>);
template void StateReader::ReadInto<double>(const std::string&, std::span<double>);

void StateReader::Finish() const {
  AAH_CHECK(read_ == state_.tensors.size(), what_, ": expected ", read_, " arrays, got ",
            state_.tensors.size());
}

std::string LayerPrefix(size_t layer) { return "layer" + std::to_string(layer) + "."; }

void SaveController(const ControlState& control, const std::string& prefix, PolicyState& state,
                    Json& json) {
  VisitControlState(control, FieldSaver{prefix, state, json});
}

ControlState ReadController(const std::string& prefix, const Json& json, StateReader& reader) {
  ControlState control;
  VisitControlState(control, FieldReader{prefix, json, reader});
  return control;
}

void SaveSums(const ProjectionSums& projections, const StatisticSums& statistics,
              const std::string& prefix, PolicyState& state) {
  state.tensors[prefix + "projection_sums"] = ToTensor(projections.values());
  state.tensors[prefix + "statistic_sums"] = ToTensor(statistics.values());
}

void ReadSums(const std::string& prefix, StateReader& reader, ProjectionSums& projections,
              StatisticSums& statistics) {
  reader.ReadInto(prefix + "projection_sums", projections.values());
  reader.ReadInto(prefix + "statistic_sums", statistics.values());
}

}  // namespace aah
