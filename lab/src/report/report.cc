#include "aah/lab/report.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "aah/error.h"
#include "aah/head_features.h"
#include "aah/io/file.h"
#include "aah/io/json.h"
#include "aah/lab/machine.h"
#include "aah/lab/run_log.h"
#include "aah/lab/table.h"
#include "aah/model/train_config.h"
#include "report/selection_data.h"
#include "report/window_data.h"

// Put into the program by assets.S.
extern "C" {
extern const char aah_page_html[];        // NOLINT(readability-identifier-naming)
extern const char aah_page_html_end[];    // NOLINT(readability-identifier-naming)
extern const char aah_page_js[];          // NOLINT(readability-identifier-naming)
extern const char aah_page_js_end[];      // NOLINT(readability-identifier-naming)
extern const char aah_heat_map_js[];      // NOLINT(readability-identifier-naming)
extern const char aah_heat_map_js_end[];  // NOLINT(readability-identifier-naming)
extern const char aah_search_js[];        // NOLINT(readability-identifier-naming)
extern const char aah_search_js_end[];    // NOLINT(readability-identifier-naming)
extern const char aah_windows_js[];       // NOLINT(readability-identifier-naming)
extern const char aah_windows_js_end[];   // NOLINT(readability-identifier-naming)
extern const char aah_plotly_js[];        // NOLINT(readability-identifier-naming)
extern const char aah_plotly_js_end[];    // NOLINT(readability-identifier-naming)
}

namespace aah {
namespace {

constexpr size_t kMostPoints = 2000;  // of a curve: more than a screen shows only weighs

std::string_view Asset(const char* begin, const char* end) {
  return {begin, static_cast<size_t>(end - begin)};
}

// JSON has no NaN.
Json Number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json FiguresJson(const RunFigures& figures) {
  return {
      {"step", figures.step},
      {"steps", figures.steps},
      {"validation_loss", Number(figures.validation_loss)},
      {"bits_per_byte", Number(figures.bits_per_byte)},
      {"allocated_context_ratio", Number(figures.allocated_context_ratio)},
      {"visible_pair_ratio", Number(figures.visible_pair_ratio)},
      {"flops_per_token", Number(figures.flops_per_token)},
      {"tokens_per_second", Number(figures.tokens_per_second)},
      {"speed", Number(figures.speed)},
      {"attention_share", Number(figures.attention_share)},
      {"control_share", Number(figures.control_share)},
      {"peak_memory_bytes", Number(figures.peak_memory_bytes)},
      {"parameters", Number(figures.parameters)},
      {"seconds", Number(figures.seconds)},
  };
}

// Loss, allocated context and elapsed time; of a long run the means of equal groups of steps.
Json TrainJson(const std::vector<StepRecord>& steps) {
  Json step = Json::array();
  Json loss = Json::array();
  Json elapsed = Json::array();
  Json allocated = Json::array();
  const size_t group = (steps.size() + kMostPoints - 1) / kMostPoints;
  double seconds = 0;
  for (size_t begin = 0; begin < steps.size(); begin += group) {
    const size_t end = std::min(begin + group, steps.size());
    double sum = 0;
    double allocated_sum = 0;
    for (size_t i = begin; i < end; ++i) {
      sum += steps[i].loss;
      allocated_sum += steps[i].allocated_context_ratio;
      seconds += steps[i].seconds;
    }
    step.push_back(steps[end - 1].step);
    loss.push_back(Number(sum / static_cast<double>(end - begin)));
    elapsed.push_back(Number(seconds));
    allocated.push_back(Number(allocated_sum / static_cast<double>(end - begin)));
  }
  return {{"step", step}, {"loss", loss}, {"elapsed", elapsed}, {"allocated", allocated}};
}

Json ValidationJson(const std::vector<ValidationRecord>& records) {
  Json step = Json::array();
  Json loss = Json::array();
  Json bits_per_byte = Json::array();
  for (const ValidationRecord& record : records) {
    step.push_back(record.step);
    loss.push_back(Number(record.loss));
    bits_per_byte.push_back(Number(record.bits_per_byte));
  }
  return {{"step", step}, {"loss", loss}, {"bits_per_byte", bits_per_byte}};
}

// Keys in which any run's config differs from the first one's, the folder left out.
std::vector<std::string> DifferingKeys(const std::vector<RunLog>& logs) {
  std::vector<std::string> keys;
  for (const RunLog& log : logs) {
    for (const ConfigDifference& difference : CompareRunConfigs(logs.front().config, log.config)) {
      const bool known = std::find(keys.begin(), keys.end(), difference.key) != keys.end();
      if (difference.key != "out" && !known) keys.push_back(difference.key);
    }
  }
  return keys;
}

// The machines, each with the names of the runs that were made on it.
Json MachinesJson(const std::vector<RunLog>& logs) {
  Json machines = Json::array();
  for (const RunLog& log : logs) {
    Json facts = Json::array();
    if (log.machine) {
      for (const auto& [name, value] : Describe(*log.machine)) {
        facts.push_back(Json::array({name, value}));
      }
    } else {
      facts.push_back(Json::array({"machine", "not recorded"}));
    }
    const auto same = std::find_if(machines.begin(), machines.end(),
                                   [&](const Json& machine) { return machine["facts"] == facts; });
    if (same != machines.end()) {
      (*same)["runs"].push_back(log.name);
    } else {
      machines.push_back({{"facts", facts}, {"runs", Json::array({log.name})}});
    }
  }
  return machines;
}

std::string Subtitle(const std::vector<RunLog>& logs, const std::vector<RunFigures>& figures) {
  const RunConfig& config = logs.front().config;
  const double tokens = static_cast<double>(figures.front().step) *
                        static_cast<double>(config.training.batch_size * config.model.context);
  std::string text = std::to_string(logs.size()) + (logs.size() == 1 ? " run on " : " runs on ") +
                     config.data + ": " + std::to_string(config.model.layers) + " layers, " +
                     std::to_string(config.model.heads) + " heads, width " +
                     std::to_string(config.model.width) + ", context " +
                     std::to_string(config.model.context) + ", " + FormatThousands(tokens) +
                     " tokens trained on, seed " + std::to_string(config.seed);
  if (std::isfinite(figures.front().parameters)) {
    text += ", " + FormatThousands(figures.front().parameters) + " parameters";
  }
  return text + " (of the first run).";
}

Json PageData(const std::vector<RunLog>& logs, const std::string& title) {
  const std::vector<RunFigures> figures = Compare(logs);
  const SliderSteps slider = StepsOfSlider(logs);
  Json runs = Json::array();
  for (size_t i = 0; i < logs.size(); ++i) {
    const RunLog& log = logs[i];
    Json run = {
        {"name", log.name},
        {"folder", log.folder},
        {"finished", log.metrics.summary.has_value()},
        {"figures", FiguresJson(figures[i])},
        {"train", TrainJson(log.metrics.steps)},
        {"validation", ValidationJson(log.metrics.validations)},
        {"windows", WindowData(log, slider.shown)},
        {"config", RunConfigYaml(log.config)},
    };
    const Json selection = SelectionData(log);
    if (!selection.is_null()) run["selection"] = selection;
    runs.push_back(run);
  }
  return {
      {"title", title},
      {"subtitle", Subtitle(logs, figures)},
      {"slider", {{"steps", slider.shown}, {"all", slider.all}}},
      {"features", FeatureNames()},
      {"runs", runs},
      {"differences", DifferingKeys(logs)},
      {"machines", MachinesJson(logs)},
  };
}

// Inside a script element only "</" and "<!--" could end or confuse it; in JSON strings '<' may be
// written as an escape.
std::string ScriptSafe(const Json& json) {
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

// Appends `page` up to `marker`, then `content`; leaves in `page` what follows the marker.
void Fill(std::string_view& page, std::string_view marker, std::string_view content,
          std::string& filled) {
  const size_t position = page.find(marker);
  filled += page.substr(0, position);
  filled += content;
  page.remove_prefix(position + marker.size());
}

}  // namespace

std::string ReportPage(const std::vector<RunLog>& logs, const std::string& title) {
  AAH_CHECK(!logs.empty(), "a report needs at least one run");
  std::string_view page = Asset(aah_page_html, aah_page_html_end);
  std::string filled;
  Fill(page, "@DATA@", ScriptSafe(PageData(logs, title)), filled);
  Fill(page, "@PLOTLY@", Asset(aah_plotly_js, aah_plotly_js_end), filled);
  Fill(page, "@HEAT_MAP@", Asset(aah_heat_map_js, aah_heat_map_js_end), filled);
  Fill(page, "@WINDOWS@", Asset(aah_windows_js, aah_windows_js_end), filled);
  Fill(page, "@SEARCH@", Asset(aah_search_js, aah_search_js_end), filled);
  Fill(page, "@SCRIPT@", Asset(aah_page_js, aah_page_js_end), filled);
  filled += page;
  return filled;
}

void WriteReport(const std::vector<RunLog>& logs, const std::string& title,
                 const std::string& path) {
  WriteFileAtomically(path, ReportPage(logs, title));
}

}  // namespace aah
