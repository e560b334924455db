#include <cmath>
#include <string>

#include "aah/io/json.h"
#include "aah/lab/bench.h"
#include "aah/lab/table.h"

namespace aah {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::string Milliseconds(double seconds) { return FormatFixed(1e3 * seconds, 2); }

}  // namespace

double PhasedRun::mean_step_seconds() const {
  double seconds = 0;
  for (const Phase& phase : phases) seconds += phase.share * phase.seconds;
  return seconds;
}

std::string ToJsonLine(const BenchResult& result) {
  const bool timed = result.unit == "seconds";
  OrderedJson json = {
      {"name", result.name},
      {"B", result.batch},
      {"H", result.heads},
      {"D", result.head_dim},
      {"T", result.tokens},
      {"dtype", result.dtype},
      {"instruction_set", result.instruction_set},
      {"threads", result.threads},
      {"visible_pair_ratio", result.visible_pair_ratio},
      {"repeats", result.repeats},
      {"numerator_seconds", nullptr},
      {"denominator_seconds", nullptr},
  };
  json["numerator_" + result.unit] = result.numerator;
  json["denominator_" + result.unit] = result.denominator;
  json["ratio"] = result.ratio;
  json["gflops"] = timed ? OrderedJson(result.gflops) : OrderedJson(nullptr);
  json["bar"] = result.bar;
  json["bar_kind"] = result.bar_kind == BarKind::kAtLeast ? "at_least" : "at_most";
  json["holds"] = result.holds();
  if (result.run) {
    for (const PhasedRun::Phase& phase : result.run->phases) {
      json["phase_seconds"][phase.name] = phase.seconds;
      json["phase_shares"][phase.name] = phase.share;
    }
    json["phase_seconds"]["sdpa"] = result.numerator;
    json["visible_pair_ratio_of_plan"] = result.run->visible_pair_ratio_of_plan;
    json["search_weights"] = result.run->search_weights;
    json["track_weights"] = result.run->track_weights;
  }
  return json.dump();
}

Table MakeBenchTable() {
  return Table({"ratio\n", "tokens\n", "visible\npairs", "numerator\nms or MiB",
                "denominator\nms or MiB", "GFLOP/s\n", "ratio\n", "bar\n", "holds\n"});
}

void AddResult(Table& table, const BenchResult& result) {
  const bool timed = result.unit == "seconds";
  const auto show = [&](double value) {
    return timed ? Milliseconds(value) : FormatFixed(value / 0x1p20, 2);
  };
  const std::string sign = result.bar_kind == BarKind::kAtLeast ? ">= " : "<= ";
  table.AddRow({result.name, FormatThousands(static_cast<double>(result.tokens)),
                FormatFixed(result.visible_pair_ratio, 3), show(result.numerator),
                show(result.denominator), FormatFixed(result.gflops, 1),
                FormatFixed(result.ratio, 3), sign + FormatFixed(result.bar, 3),
                result.holds() ? "yes" : "NO"});
}

}  // namespace aah
