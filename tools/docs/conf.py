"""Settings of Sphinx for the documentation site; `./run docs` calls it."""

import os

project = "capibara"
author = "the capibara authors"
copyright = author
version = release = os.environ.get("CAPIBARA_VERSION", "")
extensions = ["myst_parser", "sphinx_design", "sphinx_copybutton"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = f"capibara {release}".strip()
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
pygments_style, pygments_dark_style = "a11y-high-contrast-light", "a11y-high-contrast-dark"
highlight_language = "none"
copybutton_exclude = ".linenos, .gp, .go"
# Programs for several languages in one block and jaxprs have no lexer of their own.
suppress_warnings = ["misc.highlighting_failure"]
