// Which arrays this process may read.
#pragma once

#include <capibara/array.h>

#include <string>

namespace capibara::python {

bool may_read(const Array& array);  // true if the devices of this process hold every element
void require_readable(const Array& array);
std::string readable_repr(const Array& array);  // without values if they are not readable
// A deep copy.
Array copied(const Array& array);

}  // namespace capibara::python
