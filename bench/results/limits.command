tokmap-bench limits build/measure/tokmap-measure-1g
