tokmap-bench loader build/measure/tokmap-measure-1g
