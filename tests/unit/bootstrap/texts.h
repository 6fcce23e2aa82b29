// The error texts of several ranks. fail() keeps one text for the process, so a thread may read that of another rank:
// what is checked must hold for the texts of all.
#pragma once

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include "unit/bootstrap/meeting.h"

namespace talaria::test {

class Texts {
 public:
  void add(const std::string& text) {
    const std::lock_guard lock(mutex_);
    texts_.push_back(text);
  }
  bool all_mention(const std::string& part) const {
    return !texts_.empty() &&
           std::ranges::all_of(texts_, [&](const std::string& text) { return mentions(text, part); });
  }
  bool any_mentions(const std::string& part) const {
    return std::ranges::any_of(texts_, [&](const std::string& text) { return mentions(text, part); });
  }
  std::string joined() const {
    std::string all;
    for (const std::string& text : texts_) all += text + "\n";
    return all;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> texts_;
};

}  // namespace talaria::test
