#define PCRE2_CODE_UNIT_WIDTH 8
#include "pattern.h"

#include <pcre2.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <utility>

#include "aah/error.h"

namespace aah {
namespace {

constexpr size_t kFirstStackBytes = size_t{32} << 10U;
constexpr size_t kLargestStackBytes = size_t{64} << 20U;

// What one step may cost grows with it; no pre-tokenizer needs nearly as much.
constexpr size_t kMaxExpressionBytes = 4096;

// The published patterns take about 4 steps a byte on any text, a list of 30 words about 60.
constexpr size_t kFirstSteps = size_t{1} << 24U;
constexpr size_t kStepsPerByte = 128;

struct StepMeter {
  size_t left = kFirstSteps;
  size_t position = 0;  // in the text, at the step before
};

std::string Message(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

// A step is one item of the expression, or one byte that it went over since the step before.
// PCRE2's own limit does not do: it starts anew at every byte, counts no bytes that an item repeats
// over, and compiled code does not apply it to alternatives.
int CountStep(pcre2_callout_block* block, void* data) {
  auto& meter = *static_cast<StepMeter*>(data);
  const size_t position = block->current_position;
  const size_t steps = 1 + std::max(position, meter.position) - std::min(position, meter.position);
  meter.position = position;
  if (steps > meter.left) return PCRE2_ERROR_CALLOUT;
  meter.left -= steps;
  return 0;
}

PCRE2_SPTR Units(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

}  // namespace

struct Pattern::Code {
  pcre2_code* compiled = nullptr;
  std::string origin;

  Code() = default;
  ~Code() { pcre2_code_free(compiled); }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
};

Pattern::Pattern(std::string_view pcre2_expression, unsigned options, std::string_view origin)
    : code_(std::make_unique<Code>()) {
  code_->origin = origin;
  int error = 0;
  PCRE2_SIZE offset = 0;
  // The callouts before every item are how CountStep gets to know of it.
  code_->compiled =
      pcre2_compile(Units(pcre2_expression), pcre2_expression.size(),
                    PCRE2_UTF | PCRE2_AUTO_CALLOUT | options, &error, &offset, nullptr);
  AAH_CHECK(code_->compiled != nullptr, origin,
            ": the pre-tokenizer's pattern is malformed: ", Message(error));
  uint32_t may_match_nothing = 0;
  pcre2_pattern_info(code_->compiled, PCRE2_INFO_MATCHEMPTY, &may_match_nothing);
  AAH_CHECK(may_match_nothing == 0, origin,
            ": the pre-tokenizer's pattern can match the empty text, which is not supported");
  // Without compiled code for this machine the same matches come from the interpreter.
  pcre2_jit_compile(code_->compiled, PCRE2_JIT_COMPLETE);
}

Pattern Pattern::FromRegex(std::string_view expression, std::string_view origin) {
  AAH_CHECK(expression.size() <= kMaxExpressionBytes, origin, ": the pre-tokenizer's pattern has ",
            expression.size(), " bytes, expected at most ", kMaxExpressionBytes);
  return Pattern(TranslatePattern(expression, origin), PCRE2_UCP, origin);
}

Pattern Pattern::FromLiteral(std::string_view literal, std::string_view origin) {
  return Pattern(literal, PCRE2_LITERAL, origin);
}

Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;

struct Pattern::Matcher::State {
  explicit State(const Code& pattern_code)
      : code(pattern_code),
        data(pcre2_match_data_create(1, nullptr)),
        context(pcre2_match_context_create(nullptr)),
        stack(pcre2_jit_stack_create(kFirstStackBytes, kLargestStackBytes, nullptr)) {
    if (data == nullptr || context == nullptr || stack == nullptr) {
      Free();
      ThrowError(ErrorKind::kMachine, "out of memory while matching a pre-tokenizer's pattern");
    }
    pcre2_jit_stack_assign(context, nullptr, stack);
    pcre2_set_heap_limit(context, kLargestStackBytes >> 10U);  // in KiB; the interpreter's stack
    pcre2_set_callout(context, CountStep, &meter);
    pcre2_set_match_limit(context, std::numeric_limits<uint32_t>::max());  // the meter is stricter
  }
  ~State() { Free(); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void Free() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    pcre2_jit_stack_free(stack);
  }

  const Code& code;
  StepMeter meter;
  pcre2_match_data* data;
  pcre2_match_context* context;
  pcre2_jit_stack* stack;
};

Pattern::Matcher::Matcher(const Pattern& pattern)
    : state_(std::make_unique<State>(*pattern.code_)) {}
Pattern::Matcher::Matcher(Matcher&&) noexcept = default;
Pattern::Matcher::~Matcher() = default;

void Pattern::Matcher::ForEachPiece(std::string_view text,
                                    const std::function<void(std::string_view, bool)>& piece) {
  size_t done = 0;
  state_->meter.left += kStepsPerByte * text.size();
  while (done < text.size()) {
    state_->meter.position = done;
    const int found = pcre2_match(state_->code.compiled, Units(text), text.size(), done,
                                  PCRE2_NO_UTF_CHECK, state_->data, state_->context);
    if (found == PCRE2_ERROR_NOMATCH) break;
    // 0: more groups than the one pair of offsets asked for.
    AAH_CHECK(found >= 0, state_->code.origin, ": the pre-tokenizer's pattern gave up at byte ",
              done, " of ", text.size(), ": ",
              found == PCRE2_ERROR_CALLOUT ? "it takes too many steps" : Message(found),
              "; use a pattern that tries less, or shorter texts");
    const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(state_->data);
    if (offsets[0] > done) piece(text.substr(done, offsets[0] - done), false);
    piece(text.substr(offsets[0], offsets[1] - offsets[0]), true);
    done = offsets[1];
  }
  if (done < text.size()) piece(text.substr(done), false);
}

}  // namespace aah
