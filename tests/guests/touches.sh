#!/bin/sh
# Leaves a mark in a file as soon as it is started.
echo started > "$1"
