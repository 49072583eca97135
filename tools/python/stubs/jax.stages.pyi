from typing import TypeAlias

CompilerOptions: TypeAlias = dict[str, str | bool]
