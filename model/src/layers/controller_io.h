#ifndef AAH_MODEL_SRC_LAYERS_CONTROLLER_IO_H_
#define AAH_MODEL_SRC_LAYERS_CONTROLLER_IO_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "aah/controller.h"
#include "aah/io/json.h"
#include "aah/model/window_policy.h"

namespace aah {

// What core's controllers are fed with, and how a checkpoint holds them.

// Adds one pass's query, key and value, measured in float32.
void AddProjections(const AttentionInputs& inputs, ProjectionSums& sums);
void AddStatistics(const LayerStatistics& statistics, StatisticSums& sums);

// A vector of its own: float32, float64 or int32.
at::Tensor VectorOf(std::span<const float> values);
at::Tensor VectorOf(std::span<const double> values);
at::Tensor VectorOf(std::span<const int32_t> values);

// Looks up the vectors of a PolicyState by name and counts them. Throws aah::Error, which begins
// with `what`, for one that is missing or of another type. Borrows both arguments.
class StateReader {
 public:
  StateReader(const PolicyState& state, const char* what) : state_(state), what_(what) {}

  const char* what() const { return what_; }

  // float, double or int32_t; valid while the state lives.
  template <typename Element>
  std::span<const Element> Vector(const std::string& name);
  // Also throws for another number of elements than `values` has.
  template <typename Element>
  void ReadInto(const std::string& name, std::span<Element> values);

  // Throws aah::Error where the state holds more than was read.
  void Finish() const;

 private:
  const PolicyState& state_;
  const char* what_;
  size_t read_ = 0;
};

// Of a layer's vectors: "layer0.", "layer1.", ...
std::string LayerPrefix(size_t layer);

// Whole numbers go into `json`, the rest into vectors whose names begin with `prefix`.
void SaveController(const ControlState& control, const std::string& prefix, PolicyState& state,
                    Json& json);
ControlState ReadController(const std::string& prefix, const Json& json, StateReader& reader);

void SaveSums(const ProjectionSums& projections, const StatisticSums& statistics,
              const std::string& prefix, PolicyState& state);
void ReadSums(const std::string& prefix, StateReader& reader, ProjectionSums& projections,
              StatisticSums& statistics);

}  // namespace aah

#endif  // AAH_MODEL_SRC_LAYERS_CONTROLLER_IO_H_
