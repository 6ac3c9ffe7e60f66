tokmap-bench compare pin build/measure/tokmap-measure-1g
