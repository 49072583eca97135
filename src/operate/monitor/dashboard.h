// The page that a monitor serves: one file, nothing from elsewhere.
#pragma once

namespace capibara {

extern const char dashboard_page[];

}  // namespace capibara
