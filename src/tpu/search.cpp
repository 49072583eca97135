// The search over meshes, batches and remat policies, and the changes with the largest effect on a plan.
#include <capibara/error.h>
#include <capibara/tpu/plan.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tpu/bands.h"
#include "tpu/step.h"

namespace capibara::tpu {

namespace {

std::vector<PlanMesh> meshes_of(const Training& start) {
  std::vector<PlanMesh> meshes;
  const Architecture& m = start.model;
  const int devices = start.slice.devices() / start.slice.slices;
  for (int tensor = 1; tensor <= std::min(devices, 64); tensor *= 2) {
    if (devices % tensor != 0 || m.heads % tensor != 0 || m.hidden % tensor != 0) continue;
    for (int expert = 1; expert <= std::max<int64_t>(1, m.experts); ++expert) {
      if (expert > 1 && m.experts % expert != 0) continue;
      if (devices / tensor % expert != 0) continue;
      const int rest = devices / tensor / expert;
      for (int data = 1; data <= rest; data *= 4) {
        if (rest % data != 0) continue;
        PlanMesh mesh;
        mesh.tensor = tensor;
        mesh.expert = expert;
        mesh.data = data;
        mesh.fsdp = rest / data;
        mesh.dcn_data = start.slice.slices;
        meshes.push_back(mesh);
      }
    }
  }
  return meshes;
}

bool can_be_split(const Training& training) {
  try {
    check_split(training);
  } catch (const ValueError&) {
    return false;
  }
  return true;
}

int rank_of(Verdict verdict) { return verdict == Verdict::fits ? 0 : verdict == Verdict::cannot_tell ? 1 : 2; }

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f %%", 100 * share);
  return text;
}

}  // namespace

std::vector<Candidate> search_plans(const Training& start, const SearchOptions& options) {
  std::vector<Candidate> found;
  const double devices = start.slice.devices();
  for (const PlanMesh& mesh : meshes_of(start)) {
    std::vector<double> batches;
    if (options.global_batch > 0)
      batches.push_back(options.global_batch / devices);
    else
      for (double sequences = 1; sequences <= 16; sequences *= 2) batches.push_back(sequences / mesh.tensor);
    for (const double batch : batches) {
      if (batch * mesh.tensor * mesh.context < 0.999) continue;  // a group of devices needs at least one whole sequence
      for (const std::string& remat : options.remats) {
        Candidate candidate{start, {}, {}};
        candidate.training.mesh = mesh;
        candidate.training.batch_per_device = batch;
        candidate.training.remat = remat;
        candidate.training.recompute = -1;
        if (!can_be_split(candidate.training)) continue;
        candidate.memory = plan_memory(candidate.training);
        candidate.memory.limit_gib *= 1 - options.headroom;
        judge(candidate.memory);
        candidate.step = plan_step(candidate.training);
        found.push_back(candidate);
        if (!options.flags) continue;
        candidate.training.large_vmem = !start.large_vmem;
        candidate.step = plan_step(candidate.training);
        found.push_back(std::move(candidate));
      }
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const Candidate& a, const Candidate& b) {
    if (a.memory.verdict != b.memory.verdict) return rank_of(a.memory.verdict) < rank_of(b.memory.verdict);
    if (a.memory.verdict == Verdict::does_not_fit) return a.memory.total_gib < b.memory.total_gib;
    return a.step.tokens_per_second > b.step.tokens_per_second;
  });
  return found;
}

std::vector<Recommendation> recommend(const Training& training) {
  std::vector<Recommendation> all;
  const double now = plan_step(training).tokens_per_second;
  const bool fits = plan_memory(training).verdict == Verdict::fits;
  auto consider = [&](const std::string& text, const Training& changed) {
    if (!can_be_split(changed)) return;
    const MemoryPlan memory = plan_memory(changed);
    if (memory.verdict != Verdict::fits) return;
    const double gain = plan_step(changed).tokens_per_second / now - 1;
    if (gain > 0.01 || !fits) all.push_back({concat(text, fits ? "" : ": then it fits"), gain});
  };
  for (const char* remat : {"none", "minimal", "qkv", "full", "offload"}) {
    Training changed = training;
    changed.remat = remat;
    changed.recompute = -1;
    if (training.remat != remat) consider(concat("remat ", remat, " instead of ", training.remat), changed);
  }
  for (const double factor : {2.0, 4.0, 0.5}) {
    Training changed = training;
    changed.batch_per_device *= factor;
    if (changed.batch_per_device * changed.mesh.tensor >= 0.999) {
      consider(
          concat("a batch of ", changed.batch_per_device, " on each device instead of ", training.batch_per_device),
          changed);
    }
  }
  if (!training.large_vmem) {
    Training changed = training;
    changed.large_vmem = true;
    consider(concat("the flag ", step_flags(changed)), changed);
  }
  for (const PlanMesh& mesh : meshes_of(training)) {
    Training changed = training;
    changed.mesh = mesh;
    if (mesh.text() != training.mesh.text() && training.batch_per_device * mesh.tensor >= 0.999)
      consider(concat("the mesh ", mesh.text()), changed);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Recommendation& a, const Recommendation& b) { return a.gain > b.gain; });
  if (all.size() > 5) all.resize(5);
  for (Recommendation& one : all)
    one.text += concat(" (predicted ", one.gain >= 0 ? "+" : "", percent(one.gain), " tokens/s)");
  return all;
}

}  // namespace capibara::tpu
