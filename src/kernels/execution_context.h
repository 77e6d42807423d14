#pragma once

#include <cstdint>

#include "base/thread_team.h"

namespace ingot::kernels {

struct RowOperations;

// Where an operation runs. Every member of the thread team calls every operation with the same
// arguments; the operation computes this member's share, and all of an operation's results are
// visible to all members when it returns.
class ExecutionContext {
 public:
  // `rows`, chosen at load by row_operations(), is the same for all members.
  ExecutionContext(base::ThreadTeam& team, int member, const RowOperations& rows)
      : team_(&team), member_(member), rows_(&rows) {}

  int member() const { return member_; }
  int team_size() const { return team_->size(); }
  void barrier() const { team_->barrier(member_); }

  base::IndexRange share(int64_t count, int64_t grain = 1) const {
    return base::share_of(count, member_, team_->size(), grain);
  }

  // What operations that go row by row call for each.
  const RowOperations& rows() const { return *rows_; }

 private:
  base::ThreadTeam* team_;
  int member_;
  const RowOperations* rows_;
};

}  // namespace ingot::kernels
