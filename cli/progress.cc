#include "cli/progress.h"

#include <chrono>
#include <cstdio>
#include <string>

#include "aah/lab/machine.h"
#include "aah/lab/table.h"
#include "aah/model/run_folder.h"
#include "aah/model/trainer.h"

namespace aah {
namespace {

constexpr std::chrono::seconds kBetweenLines{10};

}  // namespace

void TrainProgress::OnStart(const RunStart& start) {
  start_ = start;
  began_ = printed_ = Clock::now();
  WriteMachineFacts(start.run_folder, ThisMachine());
  std::string text = start.run_folder + ": " + start.attention + ", " +
                     FormatThousands(static_cast<double>(start.parameters)) + " parameters, " +
                     std::to_string(start.steps) + " steps of " +
                     FormatThousands(static_cast<double>(start.tokens_per_step)) + " tokens";
  if (start.resumed) text += ", goes on after step " + std::to_string(start.step);
  line_.Print(text);
}

std::string TrainProgress::Line(const StepRecord& record) const {
  const double elapsed = std::chrono::duration<double>(Clock::now() - began_).count();
  const auto done = static_cast<double>(record.step - start_.step);
  const double left = elapsed / done * static_cast<double>(start_.steps - record.step);
  std::string text = "step " + std::to_string(record.step) + "/" + std::to_string(start_.steps) +
                     "  loss " + FormatFixed(record.loss, 4);
  // In front of what may be cut on a narrow terminal.
  if (validation_) {
    text += "  validation " + FormatFixed(validation_->loss, 4);
    if (start_.scored) text += ", " + FormatFixed(100 * validation_->accuracy, 1) + "% right";
  }
  return text + "  " + FormatThousands(record.tokens_per_second) + " tokens/s  eta " +
         FormatDuration(left);
}

std::string TrainProgress::Accuracy(const ValidationRecord& record) const {
  return start_.scored ? "  accuracy " + FormatFixed(record.accuracy, 4) : "";
}

void TrainProgress::OnStep(const StepRecord& record) {
  line_.Show(Line(record));
  const Clock::time_point now = Clock::now();
  if (!line_.live() && now - printed_ >= kBetweenLines) {
    line_.Print(Line(record));
    printed_ = now;
  }
}

void TrainProgress::OnValidation(const ValidationRecord& record) {
  validation_ = record;
  if (!line_.live()) {
    line_.Print("step " + std::to_string(record.step) + "/" + std::to_string(start_.steps) +
                "  validation loss " + FormatFixed(record.loss, 4) + "  " +
                FormatFixed(record.bits_per_byte, 4) + " bits per byte" + Accuracy(record));
  }
}

void TrainProgress::OnFinish(const SummaryRecord& summary) {
  line_.Clear();
  line_.Print("finished in " + FormatDuration(summary.seconds) + ": validation loss " +
              FormatFixed(summary.validation_loss, 4) + ", " +
              FormatFixed(summary.bits_per_byte, 4) + " bits per byte, " +
              FormatThousands(summary.tokens_per_second) + " tokens/s, peak memory " +
              FormatThousands(static_cast<double>(summary.peak_memory_bytes) / 0x1p20) + " MiB");
}

}  // namespace aah
