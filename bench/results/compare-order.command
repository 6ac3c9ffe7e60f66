tokmap-bench compare order build/measure/tokmap-measure-1g
