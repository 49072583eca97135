// What the primitives that hold programs share: lists of masks, and the pieces of the control family.
#pragma once

#include <initializer_list>

#include "lax/families.h"
#include "lax/rules.h"
#include "program/dce.h"
#include "program/derive.h"
#include "program/views.h"

namespace capibara {

std::vector<PrimitiveRecord> call_records();  // jit, call, closed_call
PrimitiveRecord scan_record();
PrimitiveRecord while_record();
PrimitiveRecord cond_record();
PrimitiveRecord checkpoint_record();
PrimitiveRecord name_record();  // checkpoint_name
std::vector<PrimitiveRecord> custom_rule_records();  // custom_jvp_call, custom_vjp_call, custom_lin...
PrimitiveRecord linear_solve_record();
Family callback_records();  // pure_callback, io_callback, debug_callback; of the effect family

using Mask = std::vector<bool>;

Mask defined_mask(std::span<const Array> arrays);
Mask mapped_mask(const BatchArgs& args);
Arrays where(std::span<const Array> arrays, const Mask& mask);  // those marked
Types where(std::span<const ArrayType> types, const Mask& mask);
Mask join(std::initializer_list<Mask> masks);
Mask part(const Mask& mask, std::size_t begin, std::size_t end);
Arrays part(std::span<const Array> arrays, std::size_t begin, std::size_t end);
void append(Arrays& to, std::span<const Array> from);
bool any(const Mask& mask);
std::size_t count(const Mask& mask);
Mask either(const Mask& a, const Mask& b);
Mask operator!(const Mask& mask);

// Puts computed values where the mask is set and empty handles elsewhere.
Arrays spread(std::span<const Array> values, const Mask& mask);
// Types of the arrays marked, as tangent or cotangent types.
Types tangent_types(std::span<const ArrayType> types, const Mask& mask);
// The jvp of a call: the same kind of call on the derived program.
using ProgramCall = std::function<Arrays(const Program&, std::span<const Array>)>;
JvpResult jvp_of_call(const Program& program, const JvpArgs& args, const ProgramCall& call);
// The same call of the program that yields the used outputs alone.
DceRule dce_of_call(const char* program_attr);
// Checks operands against a nested program's inputs; raises TypeError naming the operation.
void check_operands(const char* op, const Program& program, std::span<const ArrayType> types);

// ---- functions of lax -------------------------------------------------------------------------------------------

Types types_of(std::span<const Array> arrays);
Arrays joined(std::span<const Array> a, std::span<const Array> b);
bool all_concrete(std::initializer_list<const Arrays*> lists);
// A weakly typed start value takes the dtype that the body gives it. True where one was changed.
bool strengthen(Arrays& init, std::span<const ArrayType> outputs);
// Raises TypeError where a loop's carry leaves its body as another type.
void check_carry_types(const char* name, std::span<const ArrayType> in, std::span<const ArrayType> out);

}  // namespace capibara
