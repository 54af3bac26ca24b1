#!/bin/sh
# Reads START, and leaves without a word.
read -r start
