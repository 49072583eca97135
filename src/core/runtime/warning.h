// Warnings: advice about a program that runs all the same.
#pragma once

#include <functional>
#include <string>

namespace capibara {

enum class WarningKind { user, future, runtime, deprecation };

// Hands the text to the handler; the first one writes it to standard error.
void warn(const std::string& text, WarningKind kind = WarningKind::user);

// The handler may throw, so that the warning becomes an error. An empty one restores the first.
using WarningHandler = std::function<void(const std::string& text, WarningKind kind)>;
void set_warning_handler(WarningHandler handler);

}  // namespace capibara
