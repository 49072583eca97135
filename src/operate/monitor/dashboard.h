// The page that a monitor serves: a single self-contained file.
#pragma once

namespace capibara {

extern const char dashboard_page[];

}  // namespace capibara
