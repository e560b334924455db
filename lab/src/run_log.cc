#include "aah/lab/run_log.h"

#include <filesystem>
#include <limits>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "aah/error.h"
#include "aah/lab/machine.h"
#include "aah/lab/table.h"
#include "aah/model/run_folder.h"
#include "aah/model/run_summary.h"
#include "aah/model/train_config.h"

namespace aah {
namespace {

constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

// Runs of earlier versions did not log it, which reads as 0.
double IfLogged(double flops_per_token) {
  return flops_per_token > 0 ? flops_per_token : kNotMeasured;
}

RunFigures FromSummary(const SummaryRecord& summary) {
  RunFigures figures;
  figures.step = summary.step;
  figures.validation_loss = summary.validation_loss;
  figures.bits_per_byte = summary.bits_per_byte;
  figures.allocated_context_ratio = summary.allocated_context_ratio;
  figures.visible_pair_ratio = summary.visible_pair_ratio;
  figures.flops_per_token = IfLogged(summary.flops_per_token);
  figures.tokens_per_second = summary.tokens_per_second;
  figures.attention_share = summary.attention_share;
  figures.control_share = summary.control_share;
  figures.peak_memory_bytes = static_cast<double>(summary.peak_memory_bytes);
  figures.parameters = static_cast<double>(summary.parameters);
  figures.seconds = summary.seconds;
  return figures;
}

RunFigures FromSteps(const RunMetrics& metrics) {
  RunFigures figures = FromSummary(Summarise(metrics));
  figures.peak_memory_bytes = kNotMeasured;
  figures.parameters = kNotMeasured;
  return figures;
}

}  // namespace

RunLog ReadRunLog(const std::string& folder) {
  AAH_CHECK(
      IsRunFolder(folder), "'", folder,
      "' is no run folder: expected a folder that `aah train` has written, with a config.yaml");
  std::error_code error;
  std::filesystem::path path = std::filesystem::absolute(folder, error);
  if (error) path = folder;
  path = path.lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  RunLog log;
  log.name = path.filename().string();
  log.folder = folder;
  log.config = ReadRunConfig(ConfigPath(folder), {});
  log.metrics = ReadMetrics(folder);
  log.windows = ReadWindows(folder);
  log.groups = ReadGroups(folder);
  log.selection = ReadSelection(folder);
  log.has_plan = std::filesystem::is_regular_file(PlanPath(folder), error);
  log.machine = ReadMachineFacts(folder);
  return log;
}

std::vector<RunFigures> Compare(const std::vector<RunLog>& logs) {
  std::vector<RunFigures> rows;
  for (const RunLog& log : logs) {
    const RunMetrics& metrics = log.metrics;
    RunFigures figures = metrics.summary ? FromSummary(*metrics.summary) : FromSteps(metrics);
    figures.name = log.name;
    figures.steps = log.config.training.steps;
    rows.push_back(std::move(figures));
    rows.back().speed = rows.back().tokens_per_second / rows.front().tokens_per_second;
  }
  return rows;
}

Table ComparisonTable(const std::vector<RunFigures>& figures) {
  const std::string first = figures.empty() ? "first" : figures.front().name;
  Table table({"run", "validation\nloss", "bits per\nbyte", "allocated\ncontext", "visible\npairs",
               "tokens/s\n", "speed over\n" + first, "attention\nshare", "peak memory\nMiB"});
  for (const RunFigures& row : figures) {
    std::string name = row.name;
    if (row.step < row.steps) {
      name += " (step " + std::to_string(row.step) + " of " + std::to_string(row.steps) + ")";
    }
    table.AddRow({name, FormatFixed(row.validation_loss, 4), FormatFixed(row.bits_per_byte, 4),
                  FormatFixed(row.allocated_context_ratio, 3),
                  FormatFixed(row.visible_pair_ratio, 3), FormatThousands(row.tokens_per_second),
                  FormatFixed(row.speed, 2), FormatFixed(100 * row.attention_share, 1) + "%",
                  FormatThousands(row.peak_memory_bytes / 0x1p20)});
  }
  return table;
}

}  // namespace aah
