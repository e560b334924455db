#include "attention/cpu/forward.h"

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "aah/float16.h"

// Highway compiles this file once per instruction set; the order of what follows is its own.
// clang-format off
#include "attention/cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/cpu/forward.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "attention/cpu/decode-inl.h"
#include "attention/cpu/forward-inl.h"
#include "attention/cpu/rows-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace aah {
namespace HWY_NAMESPACE {

int64_t PanelWidth() { return kPanelWidth; }

size_t ForwardFloats() { return static_cast<size_t>(kStripRows * kScoreStride); }

void Forward(const cpu::ForwardBlock& block) {
  if (block.statistics != nullptr) {
    ForwardBlockImpl<true>(block);
  } else {
    ForwardBlockImpl<false>(block);
  }
}

// Function tables hold no templates: one set of names per storage.
#define AAH_FOR_STORAGE(Storage)                                                                  \
  void Pack##Storage(cpu::Rows<const Storage> keys, int64_t count, int64_t head_dim,              \
                     float* panel) {                                                              \
    PackKeyPanelImpl<Storage>(keys, count, head_dim, panel);                                      \
  }                                                                                               \
  void Load##Storage(cpu::Rows<const Storage> rows, int64_t count, int64_t head_dim, float scale, \
                     float* destination) {                                                        \
    LoadRowsImpl<Storage>(rows, count, head_dim, scale, destination);                             \
  }                                                                                               \
  void Store##Storage(const float* source, int64_t count, int64_t head_dim,                       \
                      cpu::Rows<Storage> rows) {                                                  \
    StoreRowsImpl<Storage>(source, count, head_dim, rows);                                        \
  }                                                                                               \
  void Decode##Storage(const float* query, int64_t head_dim, float score_cap,                     \
                       const cpu::DecodeSpan<Storage>& span, cpu::DecodePartial& partial,         \
                       float* out, float* workspace) {                                            \
    DecodeSpanImpl<Storage>(query, head_dim, score_cap, span, partial, out, workspace);           \
  }
AAH_FOR_STORAGE(float)
AAH_FOR_STORAGE(Bfloat16)
AAH_FOR_STORAGE(Float16)
#undef AAH_FOR_STORAGE

}  // namespace HWY_NAMESPACE
}  // namespace aah
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace aah {

HWY_EXPORT(PanelWidth);
HWY_EXPORT(ForwardFloats);
HWY_EXPORT(Forward);

namespace cpu {

ScoreScale::ScoreScale(float scale, float softcap) {
  constexpr float kLog2e = 1.44269504f;
  query_factor = softcap != 0 ? scale / softcap : scale * kLog2e;
  cap = softcap * kLog2e;
}

int64_t KeyPanelWidth() { return HWY_DYNAMIC_DISPATCH(PanelWidth)(); }
size_t ForwardWorkspace() { return HWY_DYNAMIC_DISPATCH(ForwardFloats)(); }
void RunForwardBlock(const ForwardBlock& block) { HWY_DYNAMIC_DISPATCH(Forward)(block); }
size_t DecodeWorkspace(int64_t head_dim) { return static_cast<size_t>(64 * head_dim); }

}  // namespace cpu

#define AAH_FOR_STORAGE(Storage)                                                             \
  HWY_EXPORT(Pack##Storage);                                                                 \
  HWY_EXPORT(Load##Storage);                                                                 \
  HWY_EXPORT(Store##Storage);                                                                \
  HWY_EXPORT(Decode##Storage);                                                               \
  template <>                                                                                \
  void cpu::PackKeyPanel<Storage>(Rows<const Storage> keys, int64_t count, int64_t head_dim, \
                                  float* panel) {                                            \
    HWY_DYNAMIC_DISPATCH(Pack##Storage)(keys, count, head_dim, panel);                       \
  }                                                                                          \
  template <>                                                                                \
  void cpu::LoadRows<Storage>(Rows<const Storage> rows, int64_t count, int64_t head_dim,     \
                              float scale, float* destination) {                             \
    HWY_DYNAMIC_DISPATCH(Load##Storage)(rows, count, head_dim, scale, destination);          \
  }                                                                                          \
  template <>                                                                                \
  void cpu::StoreRows<Storage>(const float* source, int64_t count, int64_t head_dim,         \
                               Rows<Storage> rows) {                                         \
    HWY_DYNAMIC_DISPATCH(Store##Storage)(source, count, head_dim, rows);                     \
  }                                                                                          \
  template <>                                                                                \
  void cpu::RunDecodeSpan<Storage>(const float* query, int64_t head_dim, float score_cap,    \
                                   const DecodeSpan<Storage>& span, DecodePartial& partial,  \
                                   float* out, float* workspace) {                           \
    HWY_DYNAMIC_DISPATCH(Decode##Storage)                                                    \
    (query, head_dim, score_cap, span, partial, out, workspace);                             \
  }
AAH_FOR_STORAGE(float)
AAH_FOR_STORAGE(Bfloat16)
AAH_FOR_STORAGE(Float16)
#undef AAH_FOR_STORAGE

}  // namespace aah
#endif  // HWY_ONCE
