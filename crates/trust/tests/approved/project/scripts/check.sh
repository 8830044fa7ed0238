#!/bin/sh
. ./scripts/lib.sh
