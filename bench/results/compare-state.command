tokmap-bench compare state build/measure/tokmap-measure-1g
