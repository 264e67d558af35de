# Fits on request: lines "loss penalty tolerance" in, "seconds cpu index:value ..." out. See fit_glmnet.py.
suppressPackageStartupMessages({library(Matrix); library(glmnet)})
folder <- commandArgs(trailingOnly = TRUE)[1]
whole <- function(name) readBin(file.path(folder, name), "integer", 1e9, size = 4)
real <- function(name) readBin(file.path(folder, name), "double", 1e9, size = 8)
A <- new("dgCMatrix", p = whole("offsets"), i = whole("rows"), x = real("values"), Dim = whole("shape"))
b <- real("targets")
largest <- max(abs(as.vector(crossprod(A, b)))) / length(b)

requests <- file("stdin", "r")
while (length(line <- readLines(requests, 1)) > 0) {
    words <- strsplit(line, " ")[[1]]
    penalty <- as.numeric(words[2])
    logistic <- words[1] == "l1_logistic"
    top <- if (logistic) largest / 2 else largest
    path <- exp(seq(log(top), log(penalty), length.out = 10))
    before <- proc.time()
    model <- glmnet(A, if (logistic) factor(b) else b, family = if (logistic) "binomial" else "gaussian",
                    standardize = FALSE, intercept = FALSE, lambda = path, thresh = as.numeric(words[3]), maxit = 1e8)
    spent <- proc.time() - before
    weights <- model$beta[, ncol(model$beta)]
    nonzero <- which(weights != 0)
    pairs <- paste0(nonzero - 1, ":", sprintf("%.17g", weights[nonzero]), collapse = " ")
    cat(spent[["elapsed"]], spent[["user.self"]] + spent[["sys.self"]], pairs, "\n")
    flush(stdout())
}
