tokmap-bench open build/measure/tokmap-measure-1g
