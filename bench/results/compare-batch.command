tokmap-bench compare batch build/measure/tokmap-measure-1g
