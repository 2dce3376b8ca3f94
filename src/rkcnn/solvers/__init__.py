"""The mathematics: tableaus, the named methods, and steps that know tensors and t but no layers."""
