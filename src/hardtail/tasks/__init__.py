"""One file a task: vocabulary and layout, generator, strata, logical orders, parents, checks."""
