tokmap-bench verify build/measure/tokmap-measure-1g
