tokmap-bench compare files build/measure/tokmap-measure-1g
