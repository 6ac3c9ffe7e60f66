tokmap-bench slice build/measure/tokmap-measure-1g
