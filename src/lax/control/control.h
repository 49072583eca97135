// Shared by the primitives that hold programs: calls of derived programs, and the pieces of the control family.
#pragma once

#include "lax/call.h"
#include "lax/families.h"
#include "lax/rules.h"
#include "program/derive/derive.h"
#include "program/derive/masks.h"
#include "program/ir/dce.h"
#include "program/ir/views.h"

namespace capibara {

std::vector<PrimitiveRecord> call_records();  // jit, call, closed_call
PrimitiveRecord scan_record();
PrimitiveRecord while_record();
PrimitiveRecord cond_record();
PrimitiveRecord checkpoint_record();
PrimitiveRecord name_record();                       // checkpoint_name
std::vector<PrimitiveRecord> custom_rule_records();  // custom_jvp_call, custom_vjp_call, custom_lin...
PrimitiveRecord linear_solve_record();
Family callback_records();  // pure_callback, io_callback, debug_callback; of the effect family

// Types of the marked arrays, as tangent or cotangent types.
Types tangent_types(std::span<const ArrayType> types, const Mask& mask);
// The jvp of a call: the same kind of call on the derived program.
using ProgramCall = std::function<Arrays(const Program&, std::span<const Array>)>;
JvpResult jvp_of_call(const Program& program, const JvpArgs& args, const ProgramCall& call);
// The same call of the program that yields only the used outputs.
DceRule dce_of_call(const char* program_attr);
// A split under a policy whose staged half yields the known outputs too, after the unknown ones: their readers use
// them from there, recomputed unless the policy lets them be saved.
ProgramSplit partial_eval_offering(const Program& program, const Mask& unknown, const Mask& instantiate,
                                   const SavePolicy& policy);
// Checks operands against a nested program's inputs; raises TypeError naming the operation.
void check_operands(const char* op, const Program& program, std::span<const ArrayType> types);

// ---- functions of lax -------------------------------------------------------------------------------------------

Types types_of(std::span<const Array> arrays);
Arrays joined(std::span<const Array> a, std::span<const Array> b);
bool all_concrete(std::initializer_list<const Arrays*> lists);
// A weakly typed start value takes the dtype that the body returns for it. True if one was changed.
bool strengthen(Arrays& init, std::span<const ArrayType> outputs);
// Raises TypeError if a loop's carry leaves its body with another type.
void check_carry_types(const char* name, std::span<const ArrayType> in, std::span<const ArrayType> out);
// For each output the input that every branch returns there, or -1. This value does not depend on the index: it is not
// an output of the equation, so that a mapped index leaves it unmapped.
std::vector<int> forwarded_inputs(std::span<const Program> branches);
// True if shape, dtype and the mesh axes over which they vary are the same.
bool same_type_and_axes(const ArrayType& a, const ArrayType& b);
// "; this might be fixed by ..." if a type varies over fewer mesh axes than `wanted`; else empty.
std::string pcast_hint(const ArrayType& type, const ArrayType& wanted, const std::string& what);

}  // namespace capibara
