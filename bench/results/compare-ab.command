tokmap-bench compare ab build/measure/tokmap-measure-1g
