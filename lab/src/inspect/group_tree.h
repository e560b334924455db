#ifndef AAH_LAB_INSPECT_GROUP_TREE_H_
#define AAH_LAB_INSPECT_GROUP_TREE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "aah/model/run_folder.h"

namespace aah {

// The columns' titles of GroupTreeText, two lines.
std::string GroupTreeTitles();

// One layer's groups as a tree, the coarsest level outside: a line a group with its heads, its
// window ('*' where its parent's cut it) and its nine features; at most 79 columns.
std::string GroupTreeText(const std::vector<GroupRecord>& groups);

// "0-2,5": numbers, ascending, as ranges.
std::string Ranges(std::span<const int32_t> numbers);

// A number in at most five columns: .0012, 0.123, 12.35, 123.5, 2e-05; "-" for NaN.
std::string Compact(double value);

}  // namespace aah

#endif  // AAH_LAB_INSPECT_GROUP_TREE_H_
