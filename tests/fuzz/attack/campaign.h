#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/fuzz/attack/attack.h"

namespace heddle::fuzz {

struct CampaignOptions {
  std::string attack;  // its name, in messages and files
  uint64_t seed = 1, count = 500;
  uint64_t batch = 100;       // cases of one child process
  double seconds = 1e9;       // begin no batch after this time
  int jobs = 1;               // child processes at a time
  int timeout = 20;           // seconds of processor time for one case that count as a hang
  uint64_t memory_mb = 2048;  // growth of a process that counts as a failure
  int max_failures = 20;      // stop after so many
  std::string save;           // folder for the cases that failed; "": they are not kept
  std::string state;          // file to go on from and to write progress to; "": none
  std::string build;          // what is attacked, for the record
};

struct Failure {
  uint64_t seed = 0;
  std::string kind;  // the same for the same defect, as far as that can be told
  std::string what;
};

// What is known of a campaign; in JSON in its state file.
struct Progress {
  uint64_t next = 1;                                      // the first seed that no batch has had
  std::vector<std::pair<uint64_t, uint64_t>> unfinished;  // seeds [begin, end) of batches that did not end
  std::map<std::string, uint64_t> outcomes;               // cases by how they ended, failures apart
  std::vector<Failure> failures;
  std::map<std::string, uint64_t> builds;  // cases by CampaignOptions::build
  std::string first_day, last_day;         // UTC
  double seconds = 0, cpu_seconds = 0;     // of the processes that ran the cases, the second; in all

  uint64_t cases() const;
};

// Runs the seeds that are still to do, in child processes. A case ends well with what Attack::run() returns or with an
// Error; a crash, a sanitizer's report, a hang, an internal error, another exception, output on stdout and gigabytes of
// memory are failures. They are printed with how to repeat them, the first of each kind is made smaller, and its
// files are kept below `save`. Returns what is known then.
Progress run_campaign(Attack& attack, const CampaignOptions& options);

// Runs one case that lies in a folder: its outcome, which begins with "fail" where it is a failure.
std::string run_case(Attack& attack, uint64_t seed, const std::string& folder, const CampaignOptions& options);

Progress read_progress(const std::string& file);  // empty where there is none
void write_progress(const Progress& progress, const CampaignOptions& options);

}  // namespace heddle::fuzz
