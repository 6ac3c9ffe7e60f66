tokmap-bench compare workers build/measure/tokmap-measure-1g
