// Matmuls of ragged groups of rows: one matmul for each group, by the blocks and tiles of dot_general.
//
// Groups are distributed to threads whole, costly ones first; a group that is a large part of all the work is split
// into its own blocks. Each matmul is partitioned by its shape alone: the number of threads changes nothing.
#include <algorithm>
#include <numeric>

#include "backends/cpu/kernels/gemm/amx/amx_product.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/reference/kernels.h"
#include "core/runtime/interrupt.h"
#include "lax/contract/contract.h"
#include "lax/contract/ragged_dot.h"

namespace capibara::cpu {

namespace {

constexpr double small_product = 4096;  // multiplications: plain loops

// An operand: [batch, free, inner]; if each group has its own matrix, these are `group` elements apart.
struct Operand {
  int64_t size = 0;
  Axis batch, free, inner;
  int64_t group = 0;
};

struct GroupedPlan {
  ProductTypes types;
  Operand left, right;
  DType sizes_type;
  int64_t batch = 1, groups = 0, length = 0;  // length: of the ragged dimension
  int64_t step = 1;                           // rows (or inner elements) of the left operand at one position of it
  bool over_inner = false;                    // groups cut the inner dimension: each has its own result
  bool shared_sizes = false;                  // by all batches
  int64_t out_size = 0, out_batch = 0, out_group = 0;

  int64_t columns() const { return right.free.extent(); }
};

// One matmul: positions [begin, end) of the ragged dimension.
struct Task {
  int64_t batch, group, begin, end;
  double cost;
};

// Negative group sizes count as zero; positions past the end belong to no group.
std::vector<Task> tasks_of(const GroupedPlan& plan, const std::byte* sizes, std::vector<int64_t>& ends) {
  std::vector<Task> tasks;
  const double elements = static_cast<double>(plan.step) * static_cast<double>(plan.columns()) *
                          static_cast<double>(plan.over_inner ? plan.left.free.extent() : plan.left.inner.extent());
  for (int64_t b = 0; b < plan.batch; ++b) {
    int64_t end = 0;
    for (int64_t g = 0; g < plan.groups; ++g) {
      const int64_t at = (plan.shared_sizes ? 0 : b) * plan.groups + g, begin = end;
      const int64_t size = std::max<int64_t>(0, element_as_int64(plan.sizes_type, sizes, at));
      end += std::min(size, plan.length - begin);
      if (begin < end || plan.over_inner)
        tasks.push_back({b, g, begin, end, static_cast<double>(end - begin) * elements});
    }
    ends.push_back(end);
  }
  return tasks;
}

template <class T>
void fill_zero(T* out, int64_t count) {
  std::fill_n(out, count, T(0));
}

template <class K, class S>
void multiply(const Matrix<S>& left, const Matrix<S>& right, typename K::Sum* out, const Finish* finish) {
  using P = typename K::Packed;
  const int64_t m = left.free.extent(), n = right.free.extent(), k = left.inner.extent();
  const Axis rows = Axis::regular(m, n), columns = Axis::regular(n, 1);
  const auto done = [&] {
    if (finish) (*finish)(0, m, 0, n);
  };
  if (k == 0) {
    fill_zero(out, m * n);
    return done();
  }
  if constexpr (std::is_same_v<S, typename K::Sum>) {
    if (static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) <= small_product) {
      multiply_small<S>(left, right, out, rows, columns);
      return done();
    }
  }
  if constexpr (std::is_same_v<S, typename K::Sum> || std::is_same_v<typename K::Sum, float>) {
    if (multiply_vector<S, typename K::Sum>(left, right, out, rows, columns)) return done();
  }
  auto pack_left = [&](int64_t first, int64_t count, int64_t k0, int64_t some, int64_t width, P* block) {
    pack_operand<K, S>(left, AmxSide::left, first, count, k0, some, width, block);
  };
  auto pack_right = [&](int64_t first, int64_t count, int64_t k0, int64_t some, int64_t width, P* block) {
    pack_operand<K, S>(right, AmxSide::right, first, count, k0, some, width, block);
  };
  Product<K> product{k, pack_left, pack_right, out, rows, columns, finish};
  read_in_place<K, S>(left, right, product);
  product.run();
}

template <class K, class S>
void run_task(const GroupedPlan& plan, const Task& task, const S* lhs, const S* rhs, std::byte* out) {
  const int64_t begin = task.begin * plan.step, count = (task.end - task.begin) * plan.step, n = plan.columns();
  lhs += plan.left.batch.at(task.batch);
  rhs += plan.right.batch.at(task.batch);
  int64_t to = task.batch * plan.out_batch, m = count;
  Axis free = plan.left.free, left_inner = plan.left.inner, right_inner = plan.right.inner;
  if (plan.over_inner) {
    m = free.extent();
    to += task.group * plan.out_group;
    lhs += begin * left_inner.stride();
    rhs += begin * right_inner.stride();
    left_inner = Axis::regular(count, left_inner.stride());
    right_inner = Axis::regular(count, right_inner.stride());
  } else {
    to += begin * n;
    lhs += begin * free.stride();
    rhs += task.group * plan.right.group;
    free = Axis::regular(count, free.stride());
  }
  ProductResult<typename K::Sum> result(plan.types.out, out + to * storage_size(plan.types.out), m * n);
  const auto complete = [&](int64_t row, int64_t rows, int64_t column, int64_t width) {
    if (width == n) return result.convert(row * n, rows * n);
    for (int64_t i = row; i < row + rows; ++i) result.convert(i * n + column, width);
  };
  const Finish finish = complete;
  multiply<K, S>({lhs, free, left_inner}, {rhs, plan.right.free, right_inner}, result.values(),
                 result.converts() ? &finish : nullptr);
}

template <class K, class S>
void run(const GroupedPlan& plan, const S* lhs, const S* rhs, const std::byte* sizes, std::byte* out) {
  std::vector<int64_t> ends;
  std::vector<Task> tasks = tasks_of(plan, sizes, ends);
  if (!plan.over_inner) {  // rows in no group
    const int64_t row = plan.step * plan.columns() * storage_size(plan.types.out);
    for (int64_t b = 0; b < plan.batch; ++b) {
      const int64_t end = ends[static_cast<std::size_t>(b)];
      fill_zero(out + b * plan.out_batch * storage_size(plan.types.out) + end * row, (plan.length - end) * row);
    }
  }
  std::stable_sort(tasks.begin(), tasks.end(), [](const Task& a, const Task& b) { return a.cost > b.cost; });
  double total = 0;
  for (const Task& task : tasks) total += task.cost;
  std::size_t large = 0;
  const double share = total / (4 * thread_count());
  for (; large < tasks.size() && tasks[large].cost > share; ++large) run_task<K, S>(plan, tasks[large], lhs, rhs, out);
  const auto count = static_cast<int64_t>(tasks.size() - large);
  auto some = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      run_task<K, S>(plan, tasks[large + static_cast<std::size_t>(i)], lhs, rhs, out);
      poll_stop();
    }
    return 0;
  };
  constexpr double worth_sharing = 20000;  // nanoseconds
  if (multiply_cost<K>(total) < worth_sharing)
    some(0, count);
  else
    parallel_for(count, 1, some);
}

// For operands of the same numeric kind; an empty kernel for others.
HostKernel kernel_of(GroupedPlan plan) {
  const auto shared = std::make_shared<const GroupedPlan>(std::move(plan));
  HostKernel kernel;
  const auto as_stored = [&]<class K, class S>(K, Type<S>) {
    kernel = [shared](std::byte* const* buffers) {
      if (shared->out_size == 0) return;
      run<K, S>(*shared, reinterpret_cast<const S*>(buffers[0]), reinterpret_cast<const S*>(buffers[1]), buffers[2],
                buffers[3]);
    };
  };
  if (visit_amx_product(shared->types, as_stored) || visit_narrow_product(shared->types, as_stored)) return kernel;
  visit_product_type(shared->types, [&]<class T>(Type<T>) {
    if constexpr (Parts<T>::count == 1) {
      kernel = [shared](std::byte* const* buffers) {
        if (shared->out_size == 0) return;
        const GroupedPlan& own = *shared;
        Scratch<T> left_hold, right_hold;
        const T* lhs = product_operand<T>(own.types.lhs, own.types.lhs_rounded, buffers[0], own.left.size, left_hold);
        const T* rhs = product_operand<T>(own.types.rhs, own.types.rhs_rounded, buffers[1], own.right.size, right_hold);
        run<typename KindOf<T>::type, T>(own, lhs, rhs, buffers[2], buffers[3]);
      };
    }
  });
  return kernel;
}

// ---- operands ----------------------------------------------------------------------------------------------------

Axis axis_of(const ArrayType& type, const Ints& dims) {
  const Ints strides = reference::row_major_strides(type.shape);
  Ints sizes, steps;
  for (int64_t d : dims) {
    sizes.push_back(type.shape[static_cast<std::size_t>(d)]);
    steps.push_back(strides[static_cast<std::size_t>(d)]);
  }
  return Axis(sizes, steps);
}

Operand operand_of(const ArrayType& type, const Ints& batch, const Ints& free, const Ints& inner) {
  return {type.size(), axis_of(type, batch), axis_of(type, free), axis_of(type, inner)};
}

GroupedPlan plan_of(const KernelRequest& request) {
  GroupedPlan plan;
  const ArrayType &sizes = request.inputs[2], &out = request.outputs[0];
  plan.types = {request.inputs[0].dtype, request.inputs[1].dtype, request.inputs[0].dtype, request.inputs[1].dtype,
                out.dtype};
  plan.sizes_type = sizes.dtype;
  plan.groups = sizes.shape.back();
  plan.out_size = out.size();
  return plan;
}

HostKernel make_ragged_dot(const KernelRequest& request) {
  const auto numbers = request.attrs.opaque<RaggedDotDimensionNumbers>("ragged_dot_dimension_numbers");
  const RaggedMode mode = ragged_mode(*numbers);
  if (mode == RaggedMode::batch) return {};
  const ArrayType &lhs = request.inputs[0], &rhs = request.inputs[1];
  const DotDimensionNumbers& dot = numbers->dot;
  const Ints lhs_free = remaining_dims(lhs.rank(), dot.lhs_contracting, dot.lhs_batch);
  const Ints rhs_free = remaining_dims(rhs.rank(), dot.rhs_contracting, dot.rhs_batch, numbers->rhs_group_dimensions);
  const int64_t ragged = numbers->lhs_ragged_dimensions[0];
  GroupedPlan plan = plan_of(request);
  plan.types = product_types(request);
  plan.left = operand_of(lhs, dot.lhs_batch, lhs_free, dot.lhs_contracting);
  plan.right = operand_of(rhs, dot.rhs_batch, rhs_free, dot.rhs_contracting);
  plan.over_inner = mode == RaggedMode::contracting;
  const Ints& cut = plan.over_inner ? dot.lhs_contracting : lhs_free;
  const Axis& cut_axis = plan.over_inner ? plan.left.inner : plan.left.free;
  // Supports only groups of adjacent rows.
  if (cut[0] != ragged || !cut_axis.is_regular() || (plan.over_inner && !plan.right.inner.is_regular())) return {};
  plan.batch = plan.left.batch.extent();
  plan.length = lhs.shape[static_cast<std::size_t>(ragged)];
  plan.step = plan.length == 0 ? 1 : cut_axis.extent() / plan.length;
  plan.shared_sizes = request.inputs[2].rank() == 1;
  const int64_t matrix = plan.left.free.extent() * plan.columns();
  plan.out_batch = matrix;
  plan.out_group = plan.batch * matrix;
  if (!plan.over_inner) {
    const auto group = static_cast<std::size_t>(numbers->rhs_group_dimensions[0]);
    plan.right.group = reference::row_major_strides(rhs.shape)[group];
  }
  return kernel_of(std::move(plan));
}

// All dimensions except the last `own`.
Ints leading(int64_t rank, int64_t own) {
  Ints dims(static_cast<std::size_t>(rank - own));
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

HostKernel make_grouped_matmul(const KernelRequest& request) {
  const ArrayType &x = request.inputs[0], &weights = request.inputs[1];
  const int64_t rank = x.rank(), last = weights.rank() - 1;
  const bool transposed = request.attrs.boolean("transpose_weights");
  GroupedPlan plan = plan_of(request);
  plan.left = operand_of(x, leading(rank, 2), {rank - 2}, {rank - 1});
  plan.right =
      operand_of(weights, leading(weights.rank(), 3), {transposed ? last - 1 : last}, {transposed ? last : last - 1});
  plan.batch = plan.left.batch.extent();
  if (weights.rank() == 3) plan.right.batch = Axis::regular(plan.batch, 0);
  plan.right.group = plan.right.free.extent() * plan.right.inner.extent();
  plan.length = x.shape[static_cast<std::size_t>(rank - 2)];
  plan.out_batch = plan.length * plan.columns();
  return kernel_of(std::move(plan));
}

HostKernel make_grouped_outer(const KernelRequest& request) {
  const int64_t rank = request.inputs[0].rank();
  GroupedPlan plan = plan_of(request);
  plan.left = operand_of(request.inputs[0], leading(rank, 2), {rank - 1}, {rank - 2});
  plan.right = operand_of(request.inputs[1], leading(rank, 2), {rank - 1}, {rank - 2});
  plan.over_inner = true;
  plan.batch = plan.left.batch.extent();
  plan.length = request.inputs[0].shape[static_cast<std::size_t>(rank - 2)];
  plan.out_group = plan.left.free.extent() * plan.columns();
  plan.out_batch = plan.groups * plan.out_group;
  return kernel_of(std::move(plan));
}

}  // namespace

KernelMakers grouped_matmul_makers() {
  return {{"grouped_matmul", make_grouped_matmul},
          {"grouped_outer", make_grouped_outer},
          {"ragged_dot_general", make_ragged_dot}};
}

}  // namespace capibara::cpu
